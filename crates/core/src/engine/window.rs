//! Near tasks wait in memory; far ones stay in the store. Each queue and priority has a window of its own.
//!
//! ```text
//!   wake time ──▶   low_water ┄┄┄┄ read_to ┄┄┄┄┄┄┄┄┄┄┄┄ beyond ┄┄┄
//!                   in memory, or running │ nothing here │ in the store
//! ```
//!
//! A new task before `read_to` is pushed into memory, one after it is pulled in by a load later. The one
//! invariant: a row that has not ended, is not parked and lies before `read_to` is in memory.

use std::collections::{BTreeMap, BTreeSet};

use super::reads::ReadClock;
use super::{Engine, Slot};
use crate::change::Change;
use crate::engine::entry::Phase;
use crate::facts::Loaded;
use crate::id::Seq;
use crate::limits::Limits;
use crate::message::Effect;
use crate::task::{RowKey, Task, WindowId};
use crate::time::{Now, Timestamp, Wake};

/// Even a partition that is full reads so many tasks of a window at once: every queue moves on.
const LOAD_MIN: usize = 16;

/// One queue's tasks of one priority, as far as they are in memory.
pub struct Window {
    /// Rows before this are in memory, or were never there.
    read_to: RowKey,
    /// A lower bound of the first row at or after `read_to`; `None` when there is none.
    beyond: Option<Timestamp>,
    /// Tasks in memory that take up room.
    room_taken: usize,
    /// Nothing that has not ended lies, or will be filed, before this.
    low_water: Timestamp,
    left_since_mark: usize,
    /// The latest wake time among tasks that have left, or when they left if that was before: a mark goes no further,
    /// whatever the clock says.
    left_to: Timestamp,
    loading: Option<Loading>,
    /// Under what time this window stands in [`Windows::due`].
    load_at: Option<Timestamp>,
}

/// A load in flight.
struct Loading {
    clock: ReadClock,
    until: RowKey,
    limit: usize,
    /// Tasks filed into the range meanwhile, which the page may or may not contain.
    arrivals: Vec<Task>,
    /// The first row that left memory undecided meanwhile: the page does not bring it back.
    unread: Option<RowKey>,
}

impl Window {
    pub fn new(read_to: RowKey, low_water: Timestamp, beyond: Option<Timestamp>) -> Window {
        Window {
            read_to,
            beyond,
            room_taken: 0,
            low_water,
            left_since_mark: 0,
            left_to: Timestamp::MIN,
            loading: None,
            load_at: None,
        }
    }

    /// How far this window should be held in memory. What is due before its mark lies at the mark, so that a clock
    /// that was set back to before it keeps nobody waiting.
    pub fn horizon(&self, now: Now, limits: &Limits) -> Timestamp {
        self.present(now) + limits.look_ahead
    }

    fn present(&self, now: Now) -> Timestamp {
        now.wall.max(self.low_water)
    }

    fn leave_to_store(&mut self, wake_at: Timestamp) {
        self.beyond = Some(self.beyond.map_or(wake_at, |beyond| beyond.min(wake_at)));
    }

    /// A row that was in memory, or could have been, is left to the store: read from it again.
    fn unread(&mut self, key: RowKey) {
        self.read_to = self.read_to.min(key);
        self.leave_to_store(key.wake_at);
        if let Some(loading) = &mut self.loading {
            loading.unread = Some(loading.unread.map_or(key, |first| first.min(key)));
        }
    }

    /// Moves `read_to` over what is known to be empty.
    pub fn extend(&mut self, until: Timestamp) {
        if self.loading.is_none() {
            let until = self.beyond.map_or(until, |beyond| beyond.min(until));
            self.read_to = self.read_to.max(RowKey::at(until));
        }
    }
}

/// All windows of a partition. A window with nothing near costs one entry in `due`.
#[derive(Default)]
pub struct Windows {
    all: BTreeMap<WindowId, Window>,
    /// When each window should next be read.
    due: BTreeSet<(Timestamp, WindowId)>,
}

impl Windows {
    pub fn insert(&mut self, id: WindowId, window: Window) {
        self.all.insert(id, window);
    }

    pub fn wake_at(&self) -> Wake {
        Wake { wall: self.due.first().map(|(at, _)| *at), boot: None }
    }

    /// The earliest time a row of this window may be filed under.
    pub fn low_water(&self, id: WindowId) -> Timestamp {
        self.all.get(&id).map_or(Timestamp::MIN, |window| window.low_water)
    }

    /// Whether every row up to this task's has been seen; what is known to be empty counts as seen.
    pub fn extend_over(&mut self, now: Now, limits: &Limits, task: &Task) -> bool {
        let Some(window) = self.all.get_mut(&task.window()) else { return true };
        window.extend(window.horizon(now, limits));
        window.read_to > task.key()
    }

    /// A task that waits for the page around it is in memory by another way: when the page comes, it may have ended.
    pub fn forget_arrival(&mut self, task: &Task) {
        let window = self.all.get_mut(&task.window());
        if let Some(loading) = window.and_then(|window| window.loading.as_mut()) {
            loading.arrivals.retain(|arrival| arrival.id != task.id);
        }
    }

    fn open(&mut self, now: Now, limits: &Limits, id: WindowId) -> &mut Window {
        self.all
            .entry(id)
            .or_insert_with(|| Window::new(RowKey::at(now.wall + limits.look_ahead), Timestamp::MIN, None))
    }

    fn get_mut(&mut self, id: WindowId) -> &mut Window {
        self.all.get_mut(&id).expect("a task in memory has a window")
    }

    /// Notes when a window should be read; the earliest note counts.
    fn note_due(&mut self, id: WindowId, load_at: Timestamp) {
        let window = self.all.get_mut(&id).expect("a window that is noted exists");
        if window.load_at.is_none_or(|noted| load_at < noted) {
            if let Some(noted) = window.load_at.replace(load_at) {
                self.due.remove(&(noted, id));
            }
            self.due.insert((load_at, id));
        }
    }

    fn take_due(&mut self, now: Timestamp) -> Option<WindowId> {
        let &(at, id) = self.due.first().filter(|(at, _)| *at <= now)?;
        self.due.remove(&(at, id));
        self.get_mut(id).load_at = None;
        Some(id)
    }
}

impl Engine {
    /// A row was written at its place in a window: hold it, or leave it to the store.
    /// Returns the task when it is to be held.
    pub(super) fn file(&mut self, now: Now, task: Task, out: &mut Vec<Effect>) -> Option<Task> {
        let id = task.window();
        let paused = self.settings.queues.get(id.queue).paused;
        let limits = &self.settings.limits;
        let window = self.windows.open(now, limits, id);
        if !paused && window.room_taken < limits.window_max {
            window.extend(window.horizon(now, limits));
        }
        match &mut window.loading {
            _ if paused => window.unread(task.key()),
            _ if window.read_to > task.key() => return Some(task),
            Some(loading) if task.key() < loading.until => {
                let cut = loading.arrive(task, limits.window_max);
                cut.into_iter().for_each(|cut| window.leave_to_store(cut.wake_at));
            }
            _ => {
                window.leave_to_store(task.wake_at);
                self.consider_loading(now, id, out);
            }
        }
        None
    }

    /// Moves a task to another phase, and counts it in or out of its window's room.
    pub(super) fn set_phase(&mut self, now: Now, slot: Slot, phase: Phase, out: &mut Vec<Effect>) {
        let entry = &mut self.entries[slot];
        let (took_room, kept_waiting) = (entry.takes_room(), entry.is_kept_waiting());
        entry.phase = phase;
        if entry.is_kept_waiting() != kept_waiting {
            self.watch_deadline(slot);
        }
        let entry = &self.entries[slot];
        match (took_room, entry.takes_room()) {
            (false, true) => self.take_room(now, slot),
            (true, false) => {
                let (id, wake_at) = (entry.task.window(), entry.task.wake_at);
                let window = self.windows.get_mut(id);
                window.room_taken -= 1;
                window.left_since_mark += 1;
                window.left_to = window.left_to.max(wake_at.min(now.wall));
                self.consider_loading(now, id, out);
            }
            _ => {}
        }
    }

    /// Counts a task in; the window is trimmed soon when it holds twice what it should.
    pub(super) fn take_room(&mut self, now: Now, slot: Slot) {
        let id = self.entries[slot].task.window();
        let limits = &self.settings.limits;
        let window = self.windows.open(now, limits, id);
        window.room_taken += 1;
        if window.room_taken == 2 * limits.window_max {
            self.overfull.push(id);
        }
    }

    pub(super) fn trim_overfull_windows(&mut self, out: &mut Vec<Effect>) {
        while let Some(id) = self.overfull.pop() {
            self.trim(id, out);
        }
    }

    /// Reads the next piece of a window if there is room and something near; else notes when to.
    pub(super) fn consider_loading(&mut self, now: Now, id: WindowId, out: &mut Vec<Effect>) {
        let limits = &self.settings.limits;
        let Some(window) = self.windows.all.get_mut(&id) else { return };
        let Some(beyond) = window.beyond else { return };
        let full = window.room_taken > limits.window_max / 2;
        if full || window.loading.is_some() || self.leaving || self.settings.queues.get(id.queue).paused {
            return;
        }
        // Half the window ahead: each read then covers at least the other half, and is never late.
        let load_at = beyond - limits.look_ahead / 2;
        if load_at > window.present(now) {
            return self.windows.note_due(id, load_at);
        }
        if self.after.len() > limits.loaded_max {
            // What was read before is not even recorded: read on when it is.
            self.load_later.insert(id);
            return;
        }
        let room = limits.window_max - window.room_taken;
        let limit = room.min(limits.loaded_max.saturating_sub(self.entries.len()).max(LOAD_MIN));
        let until = window.horizon(now, limits);
        let clock = self.reads.begin();
        window.beyond = None;
        let until_row = RowKey::at(until);
        window.loading = Some(Loading { clock, until: until_row, limit, arrivals: Vec::new(), unread: None });
        out.push(Effect::LoadTasks { window: id, from: window.read_to, until, limit });
    }

    /// Windows that had to wait until what was read before is recorded.
    pub(super) fn load_waiting(&mut self, now: Now, out: &mut Vec<Effect>) {
        if self.after.len() <= self.settings.limits.loaded_max {
            for id in std::mem::take(&mut self.load_later) {
                self.consider_loading(now, id, out);
            }
        }
    }

    pub(super) fn load_due_windows(&mut self, now: Now, out: &mut Vec<Effect>) {
        while let Some(id) = self.windows.take_due(now.wall) {
            self.consider_loading(now, id, out);
        }
    }

    pub(super) fn consider_all_windows(&mut self, now: Now, out: &mut Vec<Effect>) {
        let ids: Vec<WindowId> = self.windows.all.keys().copied().collect();
        for id in ids {
            self.consider_loading(now, id, out);
        }
    }

    pub(super) fn tasks_loaded(&mut self, now: Now, id: WindowId, loaded: Loaded, out: &mut Vec<Effect>) {
        let window = self.windows.get_mut(id);
        let loading = window.loading.take().expect("a page comes only after it was asked for");
        let Loading { clock, until, limit, arrivals, unread } = loading;
        let full = loaded.tasks.len() >= limit;
        let last = loaded.tasks.last().filter(|_| full).map(|task| task.key().after());
        // What comes after a row that has left memory must not overtake it. A paused queue takes in nothing that was
        // filed meanwhile.
        let paused = self.settings.queues.get(id.queue).paused;
        let filed = arrivals.iter().filter(|_| paused).map(Task::key);
        let until = filed.chain(unread).fold(until, RowKey::min);
        let read_to = last.map_or(until, |last| last.min(until));
        window.read_to = window.read_to.max(read_to);
        // The range may have been cut short while it was read: what lies behind the cut is still there.
        let cut = loaded.tasks.last().filter(|task| task.key() >= read_to).map(|_| read_to.wake_at);
        for next in [loaded.next, cut].into_iter().flatten() {
            window.leave_to_store(next.max(read_to.wake_at));
        }
        let page = loaded.tasks.into_iter().filter(|task| task.key() < read_to);
        let news: Vec<Task> = page.filter(|task| self.is_news(clock, task)).collect();
        self.reads.end(clock);
        if self.leaving {
            return;
        }
        self.hold_page(now, news, arrivals, out);
        self.close_if_paused(id, out);
        for lane in self.unread_lanes.remove(&id).unwrap_or_default() {
            self.next_in_lane(now, lane, out);
        }
        self.consider_loading(now, id, out);
    }

    /// Takes in what was read and what was filed meanwhile, in one order: they may share lanes.
    fn hold_page(&mut self, now: Now, read: Vec<Task>, filed: Vec<Task>, out: &mut Vec<Effect>) {
        let seqs_filed: Vec<Seq> = filed.iter().map(|task| task.id.seq).collect();
        let read = read.into_iter().map(|task| (task, true));
        let mut page: Vec<(Task, bool)> = read.chain(filed.into_iter().map(|task| (task, false))).collect();
        page.sort_by_key(|(task, _)| task.key());
        for (task, was_read) in page {
            // A later owner, of whom we have not heard yet, may have moved what was filed here: both are of one task.
            let seq = task.id.seq;
            let is_held = self.entries.find(seq).is_some() && seqs_filed.contains(&seq);
            if was_read && !is_held {
                self.hold_loaded(now, task, out);
            } else {
                self.accept(now, task, out);
            }
        }
        self.handling = None;
    }

    /// Whether a row that was read says something we do not know better ourselves.
    pub(super) fn is_news(&self, clock: ReadClock, task: &Task) -> bool {
        let seq = task.id.seq;
        let unrecorded = seq >= self.unrecorded_from && seq < self.next_seq;
        !unrecorded && !self.reads.missed(clock, seq) && self.entries.find(seq).is_none()
    }

    /// Drops the far half of an overfull window; the store has it.
    fn trim(&mut self, id: WindowId, out: &mut Vec<Effect>) {
        let mut keys = self.taking_room(id);
        let keep = self.settings.limits.window_max;
        if keys.len() > keep {
            keys.select_nth_unstable(keep);
            for &(_, slot) in &keys[keep..] {
                self.drop_from_memory(slot, out);
            }
        }
    }

    fn taking_room(&self, id: WindowId) -> Vec<(RowKey, Slot)> {
        self.entries
            .iter()
            .filter(|(_, entry)| entry.takes_room() && entry.task.window() == id)
            .map(|(slot, entry)| (entry.task.key(), slot))
            .collect()
    }

    /// A paused queue holds no room: its tasks leave memory, and come back when it goes on.
    pub(super) fn close_paused_windows(&mut self, out: &mut Vec<Effect>) {
        let ids: Vec<WindowId> = self.windows.all.keys().copied().collect();
        for id in ids {
            self.close_if_paused(id, out);
        }
    }

    fn close_if_paused(&mut self, id: WindowId, out: &mut Vec<Effect>) {
        if self.settings.queues.get(id.queue).paused {
            for (_, slot) in self.taking_room(id) {
                self.drop_from_memory(slot, out);
            }
        }
    }

    /// Forgets a task that waits, without deciding anything about it: its row is in the store. Those
    /// behind it in its lane go with it, so that they come back in order.
    pub(super) fn drop_from_memory(&mut self, slot: Slot, out: &mut Vec<Effect>) {
        self.detach(slot, out);
        let entry = self.entries.remove(slot);
        let (key, window) = (entry.task.key(), entry.task.window());
        match entry.task.parked {
            Some(obstacle) => self.left_unparked(obstacle, key),
            None => {
                let window = self.windows.get_mut(window);
                window.room_taken -= usize::from(entry.takes_room());
                window.unread(key);
            }
        }
        for behind in self.abandon_lane(&entry.task) {
            self.drop_from_memory(behind, out);
        }
    }

    /// Raises the low-water mark of windows from which many tasks have left, so that a restart
    /// need not read past what is gone.
    pub(super) fn mark_low_water(&mut self) {
        let left_per_mark = self.settings.limits.left_per_mark;
        let worth = |window: &Window| window.left_since_mark >= left_per_mark && window.loading.is_none();
        let marks: Vec<WindowId> =
            self.windows.all.iter().filter(|(_, window)| worth(window)).map(|(id, _)| *id).collect();
        for id in marks {
            let in_memory = self.entries.iter().map(|(_, entry)| &entry.task);
            let first = in_memory.filter(|task| task.window() == id && task.parked.is_none());
            let first = first.map(|task| task.wake_at).min();
            let unrecorded = self.first_unrecorded(id);
            let window = self.windows.get_mut(id);
            window.left_since_mark = 0;
            let most = window.read_to.wake_at.min(window.left_to);
            let mark = [first, unrecorded].into_iter().flatten().fold(most, Timestamp::min);
            if mark > window.low_water {
                window.low_water = mark;
                self.changes.push(Change::LowWater(id, mark));
            }
        }
    }
}

impl Loading {
    /// Keeps a task that was filed into the range being read. When too many come, the range is cut short, and
    /// what lies behind the cut is left to the store.
    fn arrive(&mut self, task: Task, window_max: usize) -> Option<RowKey> {
        self.arrivals.push(task);
        (self.arrivals.len() > 2 * window_max).then(|| {
            self.arrivals.select_nth_unstable_by_key(window_max, Task::key);
            self.until = self.arrivals[window_max].key();
            self.arrivals.truncate(window_max);
            self.until
        })
    }
}
