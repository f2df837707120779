//! A random history of one partition, and what a reader must see of it: kept naively, in one map.

use std::collections::BTreeMap;

use bytes::Bytes;
use punctual_core::{
    Begun, Change, EndState, EndedTask, Epoch, LaneId, Obstacle, PartitionId, RowKey, Seq, Task, TaskId,
    Timestamp, WindowId,
};

use super::owner::{Owner, end, ended, lease, task_in, window};
use crate::dice::Dice;
use crate::{Filter, Found, Held, Listed, Query, Store};

const QUEUES: u32 = 3;
const OBSTACLES: [Obstacle; 3] =
    [Obstacle::Lane(LaneId(7)), Obstacle::Handler(u64::MAX), Obstacle::Destination(0)];

/// A history in the making. Every change it makes is one that an engine could make.
#[derive(Clone)]
pub struct History {
    dice: Dice,
    partition: PartitionId,
    /// Grows by one with each change: no two rows are filed under one time.
    clock: i64,
    seqs: u64,
    /// Everything that was ever accepted.
    tasks: BTreeMap<Seq, Known>,
    held: BTreeMap<Obstacle, Option<TaskId>>,
    schedules: BTreeMap<Box<str>, Bytes>,
    low_water: BTreeMap<WindowId, Timestamp>,
    /// All changes so far.
    pub written: Vec<Change>,
}

#[derive(Clone)]
enum Known {
    Live(Task),
    Ended(EndedTask),
}

impl History {
    pub fn new(seed: u64, partition: PartitionId) -> History {
        History {
            dice: Dice::new(seed),
            partition,
            clock: 1_000,
            seqs: 0,
            tasks: BTreeMap::new(),
            held: BTreeMap::new(),
            schedules: BTreeMap::new(),
            low_water: BTreeMap::new(),
            written: Vec::new(),
        }
    }

    /// Goes on as another owner would: other chances, other numbers.
    #[cfg(test)]
    pub fn taken_over(mut self) -> History {
        self.dice = Dice::new(self.dice.roll() ^ 1);
        self.seqs += 1_000;
        self
    }

    /// Up to eight changes, as if one node wrote them together.
    pub fn batch(&mut self) -> Vec<Change> {
        (0..=self.dice.below(8)).map(|_| self.change()).collect()
    }

    /// One more change.
    pub fn change(&mut self) -> Change {
        self.clock += 1;
        let change = match self.dice.below(16) {
            0..5 => self.accept(),
            5..8 => self.refile(),
            8..10 => self.begin(),
            10..12 => self.end(),
            12 => self.revive(),
            13 => self.hold(),
            14 => self.schedule(),
            _ => self.mark(),
        };
        let change = change.unwrap_or_else(|| Change::Cleared(OBSTACLES[0]));
        self.apply(&change);
        self.written.push(change.clone());
        change
    }

    fn accept(&mut self) -> Option<Change> {
        self.seqs += 1;
        let (seq, queue) = (self.seqs, 1 + self.dice.below(u64::from(QUEUES)) as u32);
        let birth = Timestamp::from_secs(self.clock + self.dice.below(50) as i64 * 1_000);
        let (keyed, parked) = (self.dice.chance(300), self.dice.chance(100));
        let task = task_in(self.partition, queue, seq, birth, |spec| {
            spec.unique_key = keyed.then(|| format!("key {seq}").into());
            spec.lane = (seq % 3 == 0).then(|| format!("lane {}", seq % 5).into());
            spec.name = (seq % 4 == 0).then(|| format!("name {seq}").into());
        });
        Some(Change::Accepted(Task { parked: parked.then_some(OBSTACLES[1]), ..task }))
    }

    fn refile(&mut self) -> Option<Change> {
        let before = self.any_live()?;
        let mut task = Task { revision: before.revision + 1, begun: None, ..before.clone() };
        // Nothing returns to before the mark.
        let mark = self.low_water.get(&before.window()).copied().unwrap_or_default();
        if before.wake_at < mark || self.dice.chance(500) {
            task.wake_at = Timestamp::from_secs(self.clock + self.dice.below(60) as i64 * 1_000);
        }
        task.parked = if self.dice.chance(300) { self.dice.pick(&OBSTACLES).copied() } else { None };
        task.last_error = (before.attempts > 0).then(|| "again".into());
        Some(Change::Refiled { from: before.place(), was: before.state, task })
    }

    fn begin(&mut self) -> Option<Change> {
        let task = self.any_live()?;
        let begun =
            if self.dice.chance(500) { lease(Epoch(1)) } else { Begun { epoch: Epoch(1), lease: None } };
        let (id, place) = (task.id, task.place());
        Some(Change::Began { id, place, attempts: task.attempts + 1, crashes: task.crashes, begun })
    }

    fn end(&mut self) -> Option<Change> {
        let states = [EndState::Succeeded, EndState::Dead, EndState::Cancelled, EndState::Expired];
        let state = self.dice.pick(&states).copied()?;
        Some(ended(&self.any_live()?, &end(state, self.clock)))
    }

    fn revive(&mut self) -> Option<Change> {
        let dead = self.tasks.values().filter_map(|known| match known {
            Known::Ended(ended) if ended.end.state == EndState::Dead => Some(&ended.task),
            _ => None,
        });
        let dead: Vec<Task> = dead.cloned().collect();
        let dead = self.dice.pick(&dead)?.clone();
        let wake_at = Timestamp::from_secs(self.clock);
        Some(Change::Revived(Task { revision: dead.revision + 1, wake_at, begun: None, ..dead }))
    }

    fn hold(&mut self) -> Option<Change> {
        let obstacle = self.dice.pick(&OBSTACLES).copied()?;
        if self.dice.chance(400) {
            return Some(Change::Cleared(obstacle));
        }
        Some(Change::Held { obstacle, holder: self.any_live().map(|task| task.id) })
    }

    fn schedule(&mut self) -> Option<Change> {
        let name = format!("schedule {}", self.dice.below(5));
        let row = self.dice.chance(700).then(|| Bytes::from(format!("row at {}", self.clock)));
        Some(Change::Schedule(name.into(), row))
    }

    /// New rows are never filed before the clock, so that the mark is honest if no live row is.
    fn mark(&mut self) -> Option<Change> {
        let window = window(1 + self.dice.below(u64::from(QUEUES)) as u32);
        let live = self.live().filter(|task| task.window() == window && task.parked.is_none());
        let first = live.map(|task| task.wake_at).min();
        let clock = Timestamp::from_secs(self.clock);
        Some(Change::LowWater(window, first.map_or(clock, |first| first.min(clock))))
    }

    fn live(&self) -> impl Iterator<Item = &Task> {
        self.tasks.values().filter_map(|known| match known {
            Known::Live(task) => Some(task),
            Known::Ended(_) => None,
        })
    }

    fn any_live(&mut self) -> Option<Task> {
        let live: Vec<Task> = self.live().cloned().collect();
        self.dice.pick(&live).cloned()
    }

    fn apply(&mut self, change: &Change) {
        match change.clone() {
            Change::Accepted(task) | Change::Refiled { task, .. } | Change::Revived(task) => {
                self.tasks.insert(task.id.seq, Known::Live(task));
            }
            Change::Began { id, attempts, crashes, begun, .. } => {
                if let Some(Known::Live(task)) = self.tasks.get_mut(&id.seq) {
                    (task.attempts, task.crashes, task.begun) = (attempts, crashes, Some(begun));
                }
            }
            Change::Ended { task, end, .. } => {
                self.tasks.insert(task.id.seq, Known::Ended(EndedTask { task, end }));
            }
            Change::Held { obstacle, holder } => drop(self.held.insert(obstacle, holder)),
            Change::Cleared(obstacle) => drop(self.held.remove(&obstacle)),
            Change::LowWater(window, at) => {
                let mark = self.low_water.entry(window).or_insert(at);
                *mark = at.max(*mark);
            }
            Change::Schedule(name, Some(row)) => drop(self.schedules.insert(name, row)),
            Change::Schedule(name, None) => drop(self.schedules.remove(&name)),
        }
    }

    /// What a reader must see now.
    pub fn view(&self) -> View {
        self.view_for(self)
    }

    /// The same, for a reader who also looks for tasks of a later time.
    pub fn view_for(&self, asked: &History) -> View {
        let mut view = View { low_water: self.low_water.clone(), ..View::default() };
        for task in self.live() {
            match task.parked {
                Some(obstacle) => view.parked.entry(obstacle).or_default().push(task.clone()),
                None => view.windows.entry(task.window()).or_default().push(task.clone()),
            }
            view.live.push(Listed::Live(task.clone()));
            if task.begun.is_some_and(|begun| begun.lease.is_some()) {
                view.leased.push(task.clone());
            }
        }
        for rows in view.windows.values_mut().chain(view.parked.values_mut()) {
            rows.sort_by_key(Task::key);
        }
        let ended = self.tasks.values().filter_map(|known| match known {
            Known::Live(_) => None,
            Known::Ended(ended) => Some(Listed::Ended(ended.clone())),
        });
        view.ended = ended.collect();
        view.live.sort_by_key(order);
        view.ended.sort_by_key(order);
        let answer = |(query, seq)| (query, self.tasks.get(&seq).map(found));
        view.found = asked.queries().into_iter().map(answer).collect();
        view.held = self.held.iter().map(|(obstacle, holder)| (*obstacle, *holder)).collect();
        view.schedules = self.schedules.iter().map(|(name, row)| (name.clone(), row.clone())).collect();
        view
    }

    /// Every task, by id and by identity.
    fn queries(&self) -> Vec<(Query, Seq)> {
        let mut queries = Vec::new();
        for (seq, known) in &self.tasks {
            let task = match known {
                Known::Live(task) => task,
                Known::Ended(ended) => &ended.task,
            };
            queries.push((Query::Id(task.id), *seq));
            let identity = task.spec.identity(task.id.queue);
            queries.extend(identity.map(|identity| (Query::Identity(identity), *seq)));
        }
        queries
    }
}

fn found(known: &Known) -> Found {
    match known {
        Known::Live(task) => Found::Live(task.clone()),
        Known::Ended(ended) => Found::Ended(ended.clone()),
    }
}

fn order(listed: &Listed) -> RowKey {
    match listed {
        Listed::Live(task) => task.key(),
        Listed::Ended(ended) => RowKey { wake_at: ended.task.id.birth, seq: ended.task.id.seq },
    }
}

fn id_of(listed: &Listed) -> TaskId {
    match listed {
        Listed::Live(task) => task.id,
        Listed::Ended(ended) => ended.task.id,
    }
}

/// All that can be read of a partition.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct View {
    windows: BTreeMap<WindowId, Vec<Task>>,
    parked: BTreeMap<Obstacle, Vec<Task>>,
    found: Vec<(Query, Option<Found>)>,
    live: Vec<Listed>,
    ended: Vec<Listed>,
    leased: Vec<Task>,
    low_water: BTreeMap<WindowId, Timestamp>,
    held: Vec<(Obstacle, Option<TaskId>)>,
    schedules: Vec<(Box<str>, Bytes)>,
}

impl View {
    /// Reads everything, in small pages.
    pub async fn read<S: Store>(owner: &Owner<'_, S>, history: &History) -> View {
        let mut view = View::default();
        view.read_windows(owner).await;
        view.read_standing(owner).await;
        let queries: Vec<Query> = history.queries().into_iter().map(|(query, _)| query).collect();
        let partition = owner.fence.partition;
        let found = owner.store.find(partition, &queries).await.expect("tasks are looked up");
        view.found = queries.into_iter().zip(found).collect();
        let here = |listed: &Listed| id_of(listed).partition(owner.partitions) == partition;
        view.live = owner.list_all(&Filter::default(), 7).await;
        view.live.retain(here);
        view.ended = owner.list_all(&Filter { ended: true, ..Filter::default() }, 7).await;
        view.ended.retain(here);
        let held = owner.store.held(partition, None, 100).await.expect("obstacles are read");
        view.held = held.into_iter().map(|Held { obstacle, holder }| (obstacle, holder)).collect();
        view.schedules = owner.store.schedules(partition, None, 100).await.expect("schedules are read");
        view
    }

    async fn read_windows<S: Store>(&mut self, owner: &Owner<'_, S>) {
        for queue in 1..=QUEUES {
            let rows = owner.load_paged(window(queue), 5).await;
            if !rows.is_empty() {
                self.windows.insert(window(queue), rows);
            }
        }
        for obstacle in OBSTACLES {
            let rows = owner.parked(obstacle, RowKey::FIRST, 1_000).await;
            if !rows.is_empty() {
                self.parked.insert(obstacle, rows);
            }
        }
    }

    /// The windows of a standing are a lower bound, so they are checked here rather than compared.
    async fn read_standing<S: Store>(&mut self, owner: &Owner<'_, S>) {
        let standing = owner.store.standing(owner.fence.partition).await.expect("the standing is read");
        for it in &standing.windows {
            let first = self.windows.get(&it.window).map(|rows| rows[0].wake_at);
            assert!(it.first <= first && it.first.is_some() == first.is_some(), "{it:?} is not {first:?}");
            if it.low_water > Timestamp::MIN {
                self.low_water.insert(it.window, it.low_water);
            }
        }
        let told: Vec<WindowId> = standing.windows.iter().map(|it| it.window).collect();
        assert!(self.windows.keys().all(|window| told.contains(window)), "windows are missing: {told:?}");
        self.leased = standing.leased;
        self.leased.sort_by_key(|task| task.id.seq);
    }

    /// What is left when all history is dropped.
    #[cfg(test)]
    pub fn pruned(mut self) -> View {
        self.ended.clear();
        for (query, found) in &mut self.found {
            let Some(Found::Ended(ended)) = found else { continue };
            let forgotten = Found::Forgotten { id: ended.task.id, state: ended.end.state };
            *found = matches!(query, Query::Identity(_)).then_some(forgotten);
        }
        self
    }

    /// Panics at the first thing that differs.
    pub fn expect_equal(&self, expected: &View) {
        assert_eq!(self.windows, expected.windows, "windows differ");
        assert_eq!(self.parked, expected.parked, "parked tasks differ");
        assert_eq!(self.found, expected.found, "what is found differs");
        assert_eq!(self.live, expected.live, "the list of live tasks differs");
        assert_eq!(self.ended, expected.ended, "the list of ended tasks differs");
        assert_eq!(self, expected, "leases, marks, obstacles or schedules differ");
    }
}
