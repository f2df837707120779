//! Live rows: each lies at its place, and a small index points at those away from their birth place.
//!
//! A row counts only where the index says its task lies. So a write that was cut between two rows is
//! either not begun or complete to a reader, and what it left behind is never taken for a task.

use std::collections::{BTreeMap, BTreeSet};

use punctual_core::{Begun, LaneId, Obstacle, Place, RowKey, Seq, Task, TaskId, WindowId};
use rustc_hash::FxHashMap;

use crate::news::attempt_is_news;
use crate::place::birth_place;

/// Rows in order of time.
pub(super) type Ordered = BTreeMap<RowKey, Box<Task>>;

/// The live rows of a partition.
#[derive(Default)]
pub(super) struct Rows {
    windows: BTreeMap<WindowId, Ordered>,
    parked: BTreeMap<Obstacle, Ordered>,
    /// The parked rows in order of time: there may be a million obstacles, too many to merge.
    parked_order: BTreeSet<(RowKey, Obstacle)>,
    /// Where tasks lie that are away from their birth place.
    moved: FxHashMap<Seq, Place>,
    /// Tasks that were filed with a lease. May name some that no longer have one, never too few.
    leased: BTreeMap<Seq, TaskId>,
}

impl Rows {
    /// Where the task lies, if it lies anywhere.
    pub fn place_of(&self, id: &TaskId) -> Place {
        self.moved_to(id).unwrap_or_else(|| birth_place(id))
    }

    pub fn moved_to(&self, id: &TaskId) -> Option<Place> {
        self.moved.get(&id.seq).copied()
    }

    /// The task's true row.
    pub fn find(&self, id: &TaskId) -> Option<&Task> {
        self.at(self.place_of(id)).filter(|task| task.id == *id)
    }

    fn at(&self, place: Place) -> Option<&Task> {
        match place {
            Place::Window(window, key) => self.windows.get(&window)?.get(&key).map(|task| &**task),
            Place::Parked(obstacle, key) => self.parked.get(&obstacle)?.get(&key).map(|task| &**task),
        }
    }

    fn at_mut(&mut self, place: Place) -> Option<&mut Task> {
        match place {
            Place::Window(window, key) => {
                self.windows.get_mut(&window)?.get_mut(&key).map(|task| &mut **task)
            }
            Place::Parked(obstacle, key) => {
                self.parked.get_mut(&obstacle)?.get_mut(&key).map(|task| &mut **task)
            }
        }
    }

    /// An attempt began, unless the row knows that and more.
    pub fn begin(&mut self, id: &TaskId, place: Place, attempts: u32, crashes: u16, begun: Begun) {
        let row = self.at_mut(place).filter(|row| row.id == *id && attempt_is_news(row, attempts));
        if let Some(row) = row {
            (row.attempts, row.crashes, row.begun) = (attempts, crashes, Some(begun));
            self.note_lease(*id, Some(begun));
        }
    }

    pub fn insert(&mut self, place: Place, task: Task) {
        self.note_lease(task.id, task.begun);
        match place {
            Place::Window(window, key) => {
                self.windows.entry(window).or_default().insert(key, Box::new(task));
            }
            Place::Parked(obstacle, key) => {
                self.parked_order.insert((key, obstacle));
                self.parked.entry(obstacle).or_default().insert(key, Box::new(task));
            }
        }
    }

    /// Whether a row of this partition lay there.
    pub fn remove(&mut self, place: Place) -> bool {
        match place {
            // An empty window stays: the next task of its queue is likely near.
            Place::Window(window, key) => {
                self.windows.get_mut(&window).is_some_and(|rows| rows.remove(&key).is_some())
            }
            Place::Parked(obstacle, key) => self.unpark(obstacle, key),
        }
    }

    fn unpark(&mut self, obstacle: Obstacle, key: RowKey) -> bool {
        let Some(rows) = self.parked.get_mut(&obstacle) else {
            return false;
        };
        let removed = rows.remove(&key).is_some();
        if rows.is_empty() {
            self.parked.remove(&obstacle);
        }
        self.parked_order.remove(&(key, obstacle));
        removed
    }

    /// Points the index at a place, or back to the birth place.
    pub fn point(&mut self, id: &TaskId, place: Place) {
        if place == birth_place(id) {
            self.moved.remove(&id.seq);
        } else {
            self.moved.insert(id.seq, place);
        }
    }

    fn note_lease(&mut self, id: TaskId, begun: Option<Begun>) {
        if begun.is_some_and(|begun| begun.lease.is_some()) {
            self.leased.insert(id.seq, id);
        }
    }

    pub fn forget_lease(&mut self, seq: Seq) {
        self.leased.remove(&seq);
    }

    /// Tasks that have a lease, in order of acceptance.
    pub fn leased(&self) -> impl Iterator<Item = &Task> {
        self.leased
            .values()
            .filter_map(|id| self.find(id))
            .filter(|task| task.begun.is_some_and(|begun| begun.lease.is_some()))
    }

    pub fn windows(&self) -> impl Iterator<Item = (WindowId, &Ordered)> {
        self.windows.iter().map(|(window, rows)| (*window, rows))
    }

    /// The rows of a window from `from` on that are true.
    pub fn window(&self, window: WindowId, from: RowKey) -> impl Iterator<Item = &Task> {
        let rows = self.windows.get(&window).into_iter().flat_map(move |rows| rows.range(from..));
        rows.filter(move |(key, task)| self.is_true(task, Place::Window(window, **key)))
            .map(|(_, task)| &**task)
    }

    /// The rows under an obstacle from `from` on that are true.
    pub fn under(&self, obstacle: Obstacle, from: RowKey) -> impl Iterator<Item = &Task> {
        let rows = self.parked.get(&obstacle).into_iter().flat_map(move |rows| rows.range(from..));
        rows.filter(move |(key, task)| self.is_true(task, Place::Parked(obstacle, **key)))
            .map(|(_, task)| &**task)
    }

    /// All parked rows that are true, in order of time.
    pub fn parked(&self, from: RowKey) -> impl Iterator<Item = &Task> {
        self.parked_order
            .range((from, FIRST_OBSTACLE)..)
            .map(|(key, obstacle)| Place::Parked(*obstacle, *key))
            .filter_map(|place| self.at(place).filter(|task| self.is_true(task, place)))
    }

    fn is_true(&self, task: &Task, place: Place) -> bool {
        self.place_of(&task.id) == place
    }
}

const FIRST_OBSTACLE: Obstacle = Obstacle::Lane(LaneId(0));
