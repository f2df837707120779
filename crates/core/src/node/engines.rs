//! The engines of the partitions owned, each at its partition's place, and what is asked about all of them at every turn
//! of the loop: when time next makes a difference, and which may have something to record. Both are noted when an engine
//! has handled something, because most have not, and asking every one of them takes longer than what happened.

use crate::engine::Engine;
use crate::id::PartitionId;
use crate::time::{BootTime, Now, Timestamp, Wake};

/// That nothing is waited for. No clock gets so far.
const NEVER: (Timestamp, BootTime) = (Timestamp::MAX, BootTime::from_micros(u64::MAX));

/// The engines.
pub struct Engines {
    all: Vec<Option<Engine>>,
    /// When time next makes a difference to each, on both clocks.
    wakes: Vec<(Timestamp, BootTime)>,
    /// Those that have handled something since they were last asked for changes.
    touched: Vec<bool>,
}

impl Engines {
    /// None yet, of so many partitions.
    pub fn new(partition_count: u16) -> Engines {
        let count = usize::from(partition_count);
        Engines {
            all: (0..count).map(|_| None).collect(),
            wakes: vec![NEVER; count],
            touched: vec![false; count],
        }
    }

    pub fn get(&self, partition: PartitionId) -> Option<&Engine> {
        self.all.get(usize::from(partition.0))?.as_ref()
    }

    /// One that is about to handle something: say [`Engines::has_handled`] after it.
    pub fn get_mut(&mut self, partition: PartitionId) -> Option<&mut Engine> {
        self.all.get_mut(usize::from(partition.0))?.as_mut()
    }

    pub fn insert(&mut self, engine: Engine) {
        let partition = engine.fence().partition;
        self.all[usize::from(partition.0)] = Some(engine);
        self.has_handled(partition);
    }

    pub fn remove(&mut self, partition: PartitionId) -> Option<Engine> {
        let place = usize::from(partition.0);
        let engine = self.all.get_mut(place)?.take();
        (self.wakes[place], self.touched[place]) = (NEVER, false);
        engine
    }

    /// An engine may wait for something else now, and have something to record.
    pub fn has_handled(&mut self, partition: PartitionId) {
        let place = usize::from(partition.0);
        if let Some(engine) = &self.all[place] {
            let Wake { wall, boot } = engine.wake_at();
            self.wakes[place] = (wall.unwrap_or(NEVER.0), boot.unwrap_or(NEVER.1));
            self.touched[place] = true;
        }
    }

    /// When time next makes a difference to any of them.
    pub fn wake_at(&self) -> Wake {
        let earlier = |(wall, boot): (Timestamp, BootTime), one: &(Timestamp, BootTime)| {
            (wall.min(one.0), boot.min(one.1))
        };
        let (wall, boot) = self.wakes.iter().fold(NEVER, earlier);
        Wake {
            wall: Some(wall).filter(|wall| *wall < NEVER.0),
            boot: Some(boot).filter(|boot| *boot < NEVER.1),
        }
    }

    /// Those to which it makes a difference by now.
    pub fn due(&self, now: Now) -> Vec<PartitionId> {
        let is_due = |(wall, boot): &(Timestamp, BootTime)| *wall <= now.wall || *boot <= now.boot;
        let due = self.wakes.iter().enumerate().filter(|(_, wake)| is_due(wake));
        due.map(|(place, _)| PartitionId(place as u16)).collect()
    }

    /// Those that may have something to record.
    pub fn touched(&self) -> impl Iterator<Item = &Engine> {
        self.all
            .iter()
            .zip(&self.touched)
            .filter(|(_, touched)| **touched)
            .filter_map(|(engine, _)| engine.as_ref())
    }

    /// The same of some partitions, which are asked for it now. One that is still being recorded will have handled
    /// something when that is over.
    pub fn take_touched(&mut self, of: impl Fn(PartitionId) -> bool) -> impl Iterator<Item = &mut Engine> {
        let touched = self.all.iter_mut().zip(&mut self.touched).filter(|(_, touched)| **touched);
        touched.filter_map(move |(engine, touched)| {
            let engine = engine.as_mut().filter(|engine| of(engine.fence().partition))?;
            *touched = false;
            Some(engine)
        })
    }

    pub fn iter(&self) -> impl Iterator<Item = &Engine> {
        self.all.iter().flatten()
    }
}
