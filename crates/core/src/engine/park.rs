//! What is due but cannot start for a narrow reason is filed under that reason, out of everybody's way.
//!
//! Parking writes the row under its obstacle. Unparking writes nothing: the tasks are read a page at a time and run
//! from where they lie.

use std::num::NonZeroU64;

use super::After;
use super::Engine;
use super::entry::{Phase, Slot};
use super::reads::ReadClock;
use crate::change::Change;
use crate::id::Seq;
use crate::message::Effect;
use crate::task::{Obstacle, RowKey, Task, WaitState};
use crate::time::Now;

/// An obstacle that stands: all that it costs in memory.
#[derive(Clone, Copy, Default, Debug)]
pub struct Hold {
    /// The head of the lane.
    pub holder: Option<NonZeroU64>,
    /// What the store knows.
    pub written: Written,
    /// The store may have rows under it that are not in memory.
    pub parked: bool,
    /// Rows being written under it: no page can be trusted to have them, and it cannot be cleared.
    pub being_parked: u32,
    /// Tasks that are not its head and whose end or move is being recorded. Until it is, a crash would bring them
    /// back to their old place in the order, so that nobody becomes the head meanwhile.
    pub departing: u32,
    /// Attempts of an earlier ownership that run although their tasks do not head the lane. None begins beside them,
    /// not even the head's.
    pub beside: u16,
}

impl Hold {
    /// Whether somebody may become the head of the lane.
    pub fn is_free(&self) -> bool {
        self.holder.is_none() && self.departing == 0 && self.beside == 0
    }
}

/// A task as the head of a lane: no task has the number zero, so that a lane without a head takes no more room.
pub fn head(seq: Seq) -> Option<NonZeroU64> {
    NonZeroU64::new(seq.0)
}

/// What the store's row of an obstacle says, once what is being recorded is recorded.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum Written {
    /// There is none.
    #[default]
    No,
    /// It stands.
    Stands,
    /// It stands since before this ownership, and may name a task that holds nothing: a write was cut.
    Doubtful,
    /// It stands, and the head of the lane is named.
    Holder,
}

/// An obstacle whose parked tasks are being read, or are in memory.
#[derive(Clone, Copy, Debug)]
pub struct Unparking {
    /// Rows before this are in memory.
    cursor: RowKey,
    loading: Option<ReadClock>,
    /// The first row that was parked while a page was being read, and may be missing from it.
    parked_meanwhile: Option<RowKey>,
    /// How many of its tasks are in memory.
    pub in_memory: usize,
    /// The gate sent one of them away since it last said that it takes more.
    refused: bool,
}

impl Default for Unparking {
    fn default() -> Self {
        Unparking {
            cursor: RowKey::FIRST,
            loading: None,
            parked_meanwhile: None,
            in_memory: 0,
            refused: false,
        }
    }
}

impl Engine {
    /// Files a due task under what keeps it from starting.
    pub(super) fn park(&mut self, now: Now, slot: Slot, obstacle: Obstacle, out: &mut Vec<Effect>) {
        let task = self.entries[slot].task.clone();
        if task.parked == Some(obstacle) {
            // It came from there and goes back: its row has not moved.
            self.forget_deadline(slot);
            self.entries.remove(slot);
            return self.left_unparked(obstacle, task.key());
        }
        if Some(obstacle) != self.lane_of(&task) {
            self.write_holder(&task);
        }
        self.refile_parked(now, slot, obstacle, None, out);
    }

    /// Writes a task's row under an obstacle; it leaves memory when that is recorded.
    pub(super) fn refile_parked(
        &mut self,
        now: Now,
        slot: Slot,
        obstacle: Obstacle,
        token: Option<crate::message::Token>,
        out: &mut Vec<Effect>,
    ) {
        self.write_obstacle(obstacle);
        // Counted at once, so that the obstacle is not cleared when the task leaves it to come back to it.
        self.holds.entry(obstacle).or_default().being_parked += 1;
        self.set_phase(now, slot, Phase::Settling(token), out);
        let was = self.row_said(slot);
        let task = &mut self.entries[slot].task;
        let from = task.place();
        let home = task.parked.replace(obstacle);
        task.revision += 1;
        task.begun = None;
        let task = task.clone();
        self.note_parked(obstacle, task.key());
        self.changes.push(Change::Refiled { from, was, task });
        self.leave_home(home, out);
        self.after.push(After::Parked(slot));
    }

    /// The row lies under its obstacle.
    pub(super) fn parked(&mut self, now: Now, slot: Slot, out: &mut Vec<Effect>) {
        let entry = self.settled(slot, out);
        let Some(obstacle) = entry.task.parked else { return };
        self.holds.entry(obstacle).or_default().being_parked -= 1;
        // A page read meanwhile cannot have had it.
        self.note_parked(obstacle, entry.task.key());
        match obstacle {
            Obstacle::Lane(_) => self.next_in_lane(now, obstacle, out),
            // It may have been eased while the row was being written.
            _ if self.is_eased(obstacle) => self.unpark(obstacle, out),
            _ => {}
        }
    }

    /// What kept these tasks from starting may be gone.
    pub(super) fn obstacle_eased(&mut self, obstacle: Obstacle, out: &mut Vec<Effect>) {
        if let Some(unparking) = self.unparking.get_mut(&obstacle) {
            unparking.refused = false;
        }
        if self.holds.get(&obstacle).is_some_and(|hold| hold.parked) {
            self.unpark(obstacle, out);
        }
    }

    /// The gate sent a task of this obstacle away.
    pub(super) fn note_refused(&mut self, obstacle: Obstacle) {
        self.unparking.entry(obstacle).or_default().refused = true;
    }

    /// Handlers that somebody has registered, and destinations that the gate has said nothing against.
    pub(super) fn ease_obstacles(&mut self, out: &mut Vec<Effect>) {
        let mut eased: Vec<Obstacle> =
            self.holds.keys().filter(|obstacle| self.is_eased(**obstacle)).copied().collect();
        eased.sort_unstable();
        for obstacle in eased {
            self.obstacle_eased(obstacle, out);
        }
    }

    /// Reads the next tasks parked under an obstacle.
    pub(super) fn unpark(&mut self, obstacle: Obstacle, out: &mut Vec<Effect>) {
        if self.leaving {
            return;
        }
        if self.at_work() > 2 * self.settings.limits.loaded_max {
            self.unpark_later.insert(obstacle);
            return;
        }
        let limit = self.parked_page(obstacle);
        let unparking = self.unparking.entry(obstacle).or_default();
        if unparking.loading.is_none() {
            unparking.loading = Some(self.reads.begin());
            unparking.parked_meanwhile = None;
            out.push(Effect::LoadParked { obstacle, from: unparking.cursor, limit });
        }
    }

    /// How many tasks in memory do more than wait for their time. Those that only wait have their windows' room, and
    /// must not keep out what is due.
    fn at_work(&self) -> usize {
        self.entries.len() - self.wheel.len()
    }

    /// Obstacles that had to wait for room in memory.
    pub(super) fn unpark_waiting(&mut self, out: &mut Vec<Effect>) {
        while self.at_work() <= self.settings.limits.loaded_max {
            let Some(obstacle) = self.unpark_later.pop_first() else { return };
            self.unpark(obstacle, out);
        }
    }

    pub(super) fn parked_loaded(
        &mut self,
        now: Now,
        obstacle: Obstacle,
        tasks: Vec<Task>,
        out: &mut Vec<Effect>,
    ) {
        let full = tasks.len() >= self.parked_page(obstacle);
        let unparking = self.unparking.get_mut(&obstacle).expect("a page comes only after it was asked for");
        let clock = unparking.loading.take().expect("a page comes only after it was asked for");
        if self.leaving {
            // Nobody takes these in, so the obstacle still stands for the next owner.
            return self.reads.end(clock);
        }
        let meanwhile = unparking.parked_meanwhile.take();
        let read_to = tasks.last().map_or(unparking.cursor, |task| task.key().after());
        unparking.cursor = meanwhile.map_or(read_to, |first| first.min(read_to));
        self.holds.entry(obstacle).or_default().parked = full || meanwhile.is_some();
        let news: Vec<Task> = tasks.into_iter().filter(|task| self.is_news(clock, task)).collect();
        self.reads.end(clock);
        // All of them are counted before any is looked at: the first may end at once, and must not take the
        // obstacle with it.
        self.unparking.entry(obstacle).or_default().in_memory += news.len();
        for task in news {
            self.hold_unparked(now, obstacle, task, out);
        }
        self.handling = None;
        match obstacle {
            Obstacle::Lane(_) => self.next_in_lane(now, obstacle, out),
            _ => self.continue_unparking(obstacle, out),
        }
    }

    fn hold_unparked(&mut self, now: Now, obstacle: Obstacle, mut task: Task, out: &mut Vec<Effect>) {
        if task.state == WaitState::Blocked {
            // A head that waits for a person. It holds the lane, whatever the lane's row says.
            let hold = self.holds.entry(obstacle).or_default();
            hold.holder = hold.holder.or(head(task.id.seq));
            self.left_unparked(obstacle, task.key());
            return self.write_holder(&task);
        }
        self.handling = Some(task.id.seq);
        let set_aside = self.note_crash(&mut task);
        let slot = self.entries.insert(task);
        match obstacle {
            _ if set_aside => self.set_aside(now, slot, None, out),
            Obstacle::Lane(_) => self.stand_behind(now, obstacle, slot, out),
            _ => self.dispatch(now, slot, out),
        }
    }

    /// A task that came from under an obstacle leaves memory undecided: its row is still there.
    pub(super) fn left_unparked(&mut self, obstacle: Obstacle, key: RowKey) {
        self.unparking.entry(obstacle).or_default().in_memory -= 1;
        self.note_parked(obstacle, key);
    }

    /// A task that came from under an obstacle is being filed elsewhere, or has ended. Said after that change is
    /// made, so that a store that is not atomic cannot clear the obstacle while the row still lies there.
    pub(super) fn leave_home(&mut self, home: Option<Obstacle>, out: &mut Vec<Effect>) {
        let Some(obstacle) = home else { return };
        if let Some(unparking) = self.unparking.get_mut(&obstacle) {
            unparking.in_memory = unparking.in_memory.saturating_sub(1);
        }
        if !matches!(obstacle, Obstacle::Lane(_)) {
            self.continue_unparking(obstacle, out);
        }
    }

    /// Reads on when half of the last page is done; forgets the obstacle when nothing is left under it.
    fn continue_unparking(&mut self, obstacle: Obstacle, out: &mut Vec<Effect>) {
        let in_memory = self.unparking.get(&obstacle).map_or(0, |unparking| unparking.in_memory);
        let Some(&Hold { parked, being_parked, .. }) = self.holds.get(&obstacle) else { return };
        if parked && in_memory <= self.parked_page(obstacle) / 2 && self.is_eased(obstacle) {
            self.unpark(obstacle, out);
        } else if !parked && being_parked == 0 && !self.is_unparking(obstacle) {
            self.clear(obstacle);
        }
    }

    fn is_eased(&self, obstacle: Obstacle) -> bool {
        match obstacle {
            Obstacle::Handler(_) => self.settings.receivers.contains(&obstacle),
            Obstacle::Destination(_) => {
                !self.unparking.get(&obstacle).is_some_and(|unparking| unparking.refused)
            }
            Obstacle::Lane(_) => false,
        }
    }

    pub(super) fn is_unparking(&self, obstacle: Obstacle) -> bool {
        self.unparking
            .get(&obstacle)
            .is_some_and(|unparking| unparking.loading.is_some() || unparking.in_memory > 0)
    }

    /// Whether a row of this key belongs before everything that lies under the obstacle in the store.
    pub(super) fn comes_before_parked(&self, obstacle: Obstacle, key: RowKey) -> bool {
        let parked = self.holds.get(&obstacle).is_some_and(|hold| hold.parked);
        match self.unparking.get(&obstacle) {
            // A page is on its way, and nobody knows yet what is in it.
            Some(unparking) if unparking.loading.is_some() => key < unparking.cursor,
            Some(unparking) => !parked || key < unparking.cursor,
            None => !parked,
        }
    }

    /// Whether a row before this key may lie under the obstacle, although some of its rows are in memory.
    pub(super) fn may_be_parked_before(&self, obstacle: Obstacle, key: RowKey) -> bool {
        let parked = self.holds.get(&obstacle).is_some_and(|hold| hold.parked);
        let unparking = self.unparking.get(&obstacle);
        unparking.is_some_and(|it| (parked || it.loading.is_some()) && key >= it.cursor)
    }

    pub(super) fn clear(&mut self, obstacle: Obstacle) {
        self.unparking.remove(&obstacle);
        if self.holds.remove(&obstacle).is_some_and(|hold| hold.written != Written::No) {
            self.changes.push(Change::Cleared(obstacle));
        }
    }

    fn write_obstacle(&mut self, obstacle: Obstacle) {
        let hold = self.holds.entry(obstacle).or_default();
        if hold.written == Written::No {
            hold.written = Written::Stands;
            self.changes.push(Change::Held { obstacle, holder: None });
        }
    }

    fn note_parked(&mut self, obstacle: Obstacle, key: RowKey) {
        self.holds.entry(obstacle).or_default().parked = true;
        if let Some(unparking) = self.unparking.get_mut(&obstacle) {
            unparking.cursor = unparking.cursor.min(key);
            let first = unparking.parked_meanwhile.map_or(key, |first| first.min(key));
            unparking.parked_meanwhile = Some(first);
        }
    }

    fn parked_page(&self, obstacle: Obstacle) -> usize {
        match obstacle {
            Obstacle::Lane(_) => self.settings.limits.behind_max,
            _ => self.settings.limits.parked_page,
        }
    }
}
