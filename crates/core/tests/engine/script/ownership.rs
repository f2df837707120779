//! Partitions change hands: claims, releases, crashes, and reports that follow a partition to its new owner.

use punctual_core::node::true_holder;
use punctual_core::{
    Begun, Event, Fence, Found, Held, Inheritance, Obstacle, Outcome, PartitionId, Query, Task, TaskId, Token,
};
use punctual_store::{Claim, Store};

use super::shell::{at_once, surely};
use super::world::World;

const HELD_PAGE: usize = 1_000;

impl World {
    pub fn owner_of(&self, partition: PartitionId) -> Option<String> {
        let ownership = &surely(self.store.ownerships())[usize::from(partition.0)];
        ownership.owner.as_deref().map(str::to_owned)
    }

    /// Claims a partition for a member, from whoever has it, and builds its engine from what the store knows.
    pub fn take_over(&mut self, member: &str, partition: PartitionId) {
        let seen = surely(self.store.ownerships())[usize::from(partition.0)].clone();
        if seen.owner.is_some_and(|owner| &*owner != member) {
            // The former owner knows nothing of this, and nobody can know what it still runs.
            self.promises.forget_attempts(|of| of == partition, self.partitions);
        }
        let Claim::Won(epoch) = surely(self.store.claim(partition, seen.epoch, member)) else {
            panic!("nobody else claims here");
        };
        // Whoever asked the engine before this one is told by the shell that the outcome is unknown.
        self.asks.clear();
        let live = self.with(member, |node, _| node.live_of(partition));
        let inheritance = Inheritance {
            standing: surely(self.store.standing(partition)),
            held: self.all_held(partition),
            live: live
                .into_iter()
                .filter_map(|token| Some((token, self.row(partition, token.id)?)))
                .collect(),
            suspects: Default::default(),
        };
        // What it waits for by the record, and what it runs itself.
        let leased: Vec<Token> = inheritance.standing.leased.iter().filter_map(leased).collect();
        let (now, fence) = (self.clock.now(), Fence { partition, epoch });
        self.with(member, |node, out| node.take_over(now, fence, inheritance, out));
        let live = self.members[member].live_tokens();
        let live = live.into_iter().filter(|token| token.id.partition(self.partitions) == partition);
        for token in leased.into_iter().chain(live) {
            self.promises.attempt_goes_on(token);
        }
        for (token, outcome) in std::mem::take(&mut self.undelivered) {
            self.forward(token, outcome);
        }
    }

    fn all_held(&self, partition: PartitionId) -> Vec<Held> {
        let mut held: Vec<Held> = Vec::new();
        loop {
            let after: Option<Obstacle> = held.last().map(|held| held.obstacle);
            let page = surely(self.store.held(partition, after, HELD_PAGE));
            if page.is_empty() {
                break;
            }
            held.extend(page);
        }
        for held in &mut held {
            let found = held.holder.and_then(|id| self.found(partition, id));
            held.holder = true_holder(*held, found.as_ref());
        }
        held
    }

    fn found(&self, partition: PartitionId, id: TaskId) -> Option<Found> {
        surely(self.store.find(partition, &[Query::Id(id)])).into_iter().next().flatten()
    }

    fn row(&self, partition: PartitionId, id: TaskId) -> Option<Task> {
        match self.found(partition, id) {
            Some(Found::Live(task)) => Some(task),
            _ => None,
        }
    }

    /// Asks the owner to give a partition up, in favour of `heir` or nobody.
    pub fn hand_over(&mut self, partition: PartitionId, heir: Option<&str>) {
        let owner = self.owner_of(partition).expect("only an owner can hand over");
        self.heirs.remove(&partition);
        self.heirs.extend(heir.map(|heir| (partition, heir.to_owned())));
        let now = self.clock.now();
        self.with(&owner, |node, out| node.ask(now, partition, Event::HandOverRequested, out));
    }

    pub fn release(&mut self, member: &str, fence: Fence) {
        let now = self.clock.now();
        self.with(member, |node, _| node.forget(now, fence.partition));
        if at_once(self.store.release(fence)).is_err() {
            return self.say("", &format!("fenced {member}"));
        }
        self.say("", &format!("release {}", fence.partition.0));
        if let Some(heir) = self.heirs.remove(&fence.partition) {
            self.take_over(&heir, fence.partition);
        }
    }

    /// A member dies with everything it runs and everything it was about to hear.
    pub fn crash(&mut self, member: &str) {
        self.members.remove(member);
        self.in_flight.retain(|it| it.member != member);
        self.reports.retain(|_, (of, _, _)| of != member);
        self.attempts.values_mut().for_each(|attempts| attempts.retain(|(of, _)| of != member));
        let owned = |world: &World, id: &PartitionId| world.owner_of(*id).as_deref() == Some(member);
        let partitions: Vec<PartitionId> =
            (0..self.partitions).map(PartitionId).filter(|id| owned(self, id)).collect();
        self.promises.forget_attempts(|of| partitions.contains(&of), self.partitions);
        for partition in partitions {
            self.take_over(member, partition);
        }
    }

    /// A report goes to the present owner, as soon as there is one.
    pub fn forward(&mut self, token: Token, outcome: Outcome) {
        match self.owner_of(token.id.partition(self.partitions)) {
            Some(owner) => self.report(&owner, token, outcome),
            None => self.undelivered.push((token, outcome)),
        }
    }
}

fn leased(task: &Task) -> Option<Token> {
    let Begun { epoch, lease } = task.begun?;
    lease.map(|_| Token { id: task.id, epoch, attempt: task.attempts })
}
