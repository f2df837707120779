//! Users: they create, cancel, move, run and retry tasks, and write down what they were told.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use punctual::shell::{Command, EndedOrForgotten, Entries};
use punctual_core::{
    Amend, Amendment, Answer, Ask, Created, Draft, OnConflict, PartitionId, Priority, QueueId, Route, Spec,
    Target, TaskId, Timestamp,
};
use punctual_store::{Found, Query, Store};
use tokio::sync::oneshot;

use crate::bugs::Bug;
use crate::history::{Amending, Happening};
use crate::settings::{BLOCKING, EXCLUSIVE, FLOWING, LIMITED, PULLED, waits_of_its_own};
use crate::targets::{Plan, Trouble, marked};
use crate::world::{PARTITIONS, World};

/// Tasks that users know of, so that they can ask for changes.
pub type Known = Arc<Mutex<Vec<TaskId>>>;

/// All users together.
#[derive(Default)]
pub struct Users {
    next: u64,
    pub known: Known,
    /// The latest due time asked for in each lane: most users ask in order.
    lanes: Vec<Timestamp>,
    /// What was asked for under a unique key: some ask again, long after.
    unique: Vec<Draft>,
}

const LANES: u64 = 6;
/// More than a node may hold of one partition, or of three.
const DELUGE: usize = 350;
/// Some times more than all slots of all nodes.
const RUSH: usize = 60;

impl Users {
    /// Somebody asks for a few tasks, or for many.
    pub fn create(&mut self, world: &mut World, count: u64) {
        for _ in 0..count {
            let draft = self.draft(world);
            if draft.spec.unique_key.is_some() {
                self.unique.push(draft.clone());
            }
            self.send_create(world, draft);
        }
    }

    /// Somebody asks for more tasks of one partition, at nearly one time, than may be held in memory.
    pub fn deluge(&mut self, world: &mut World) {
        let route = Route::anywhere(world.dice.below(u64::from(PARTITIONS)) as u32);
        let at = world.clock.true_now().wall + world.dice.up_to(Duration::from_secs(6));
        for _ in 0..DELUGE {
            let mut spec = Spec::new(Target::Handler("work".into()), at);
            spec.at = at + world.dice.up_to(Duration::from_secs(1));
            spec.payload = Plan { at_first: Trouble::None, times: 1, millis: 0 }.to_bytes();
            let (queue, priority) = (FLOWING, Priority::default());
            let on_conflict = OnConflict::default();
            self.send_create(world, Draft { route, queue, priority, spec: spec.into(), on_conflict });
        }
        world.coverage.deluges.count();
    }

    /// Many ask for tasks of all priorities, at nearly one time, that take longer than there are slots for.
    pub fn rush(&mut self, world: &mut World) {
        let at = world.clock.true_now().wall + Duration::from_secs(1);
        for _ in 0..RUSH {
            let mut spec = Spec::new(Target::Handler("work".into()), at);
            spec.at = at + world.dice.up_to(Duration::from_millis(500));
            let millis = *world.dice.pick(&[10, 200, 900]);
            spec.payload = Plan { at_first: Trouble::None, times: 1, millis }.to_bytes();
            let queue = *world.dice.pick(&[BLOCKING, FLOWING]);
            let priority = Priority::new(world.dice.below(10) as u8).unwrap_or_default();
            let (route, on_conflict) = (Route::anywhere(world.dice.roll() as u32), OnConflict::default());
            self.send_create(world, Draft { route, queue, priority, spec: spec.into(), on_conflict });
        }
        world.coverage.rushes.count();
    }

    /// Somebody asks for the very same task again.
    pub fn repeat(&mut self, world: &mut World) {
        if !self.unique.is_empty() {
            let draft = world.dice.pick(&self.unique).clone();
            self.send_create(world, draft);
        }
    }

    fn draft(&mut self, world: &mut World) -> Draft {
        let now = world.clock.true_now().wall;
        let queue = *world.dice.pick(&[BLOCKING, BLOCKING, FLOWING, FLOWING, LIMITED, EXCLUSIVE, PULLED]);
        let lane = world.dice.chance(55).then(|| world.dice.below(LANES));
        let at = self.due(world, now, lane);
        let mut spec = Spec::new(target(world, queue), at);
        spec.lane = lane.map(|lane| format!("lane-{lane}").into());
        spec.payload = plan(world).to_bytes();
        if world.dice.chance(15) {
            spec.unique_key = Some(format!("key-{}", world.dice.below(4)).into());
            // Whole seconds, so that identities meet.
            spec.at = Timestamp::from_secs(spec.at.as_micros() / 1_000_000);
        }
        if world.dice.chance(10) {
            let secs = *world.dice.pick(&[1, 5, 20]);
            spec.expires_at = Some(spec.at + world.dice.up_to(Duration::from_secs(secs)));
        }
        if world.dice.chance(10) {
            spec.retry = Some(waits_of_its_own());
        }
        let level = if spec.lane.is_some() { 5 } else { world.dice.below(10) as u8 };
        let route = spec.routing_key().map_or_else(|| Route::anywhere(world.dice.roll() as u32), Route::of);
        let on_conflict = *world.dice.pick(&[OnConflict::Replace, OnConflict::Keep, OnConflict::Error]);
        let priority = Priority::new(level).unwrap_or_default();
        Draft { route, queue, priority, spec: Arc::new(spec), on_conflict }
    }

    /// Most tasks are due soon, some late, some much later; within a lane mostly one after the other.
    fn due(&mut self, world: &mut World, now: Timestamp, lane: Option<u64>) -> Timestamp {
        let far = *world.dice.pick(&[0, 100, 1_000, 5_000, 15_000, 60_000]);
        let at = now + world.dice.up_to(Duration::from_millis(far + 1));
        let Some(lane) = lane else { return at };
        self.lanes.resize(LANES as usize, Timestamp::MIN);
        let last = &mut self.lanes[lane as usize];
        let near = now + world.dice.up_to(Duration::from_millis(3_000));
        let in_order = if world.dice.chance(85) { near.max(*last) } else { at };
        *last = in_order.min(now + Duration::from_secs(30)).max(*last);
        in_order
    }

    fn send_create(&mut self, world: &mut World, draft: Draft) {
        self.next += 1;
        let no = self.next;
        let (history, clock, known) = (world.history.clone(), world.clock.clone(), self.known.clone());
        let coverage = world.coverage.clone();
        let partition = draft.route.partition(PARTITIONS);
        let (queue, priority, spec) = (draft.queue, draft.priority, draft.spec.clone());
        let called = Happening::CreateCalled { no, queue, priority, spec };
        history.note(clock.true_now().wall, called);
        let draft = match world.bug {
            Some(bug) => bug.bend_draft(draft),
            None => draft,
        };
        let answer = ask(world, partition, Ask::Create(vec![draft]));
        tokio::spawn(async move {
            let created = match answer.await {
                Some(Answer::Created(created)) => created.into_iter().next(),
                Some(Answer::NotOwner | Answer::Overloaded) => {
                    return history.note(clock.true_now().wall, Happening::CreateRefused { no });
                }
                _ => None,
            };
            match &created {
                Some(Created::New(id)) => known.lock().expect("no user panics").push(*id),
                Some(Created::Replaced(_)) => coverage.replaced.count(),
                Some(Created::Kept(..)) => coverage.kept.count(),
                Some(Created::Ended(..)) => coverage.answered_ended.count(),
                None => coverage.answers_unknown.count(),
                Some(_) => {}
            }
            history.note(clock.true_now().wall, Happening::CreateAnswered { no, created });
        });
    }

    /// Somebody looks a task up, or waits for its end.
    pub fn look(&mut self, world: &mut World) {
        let known = self.known.lock().expect("no user panics").clone();
        if known.is_empty() {
            return;
        }
        let id = *world.dice.pick(&known);
        let (history, clock, store) = (world.history.clone(), world.clock.clone(), world.faulty.clone());
        let asked = history.moment(clock.true_now().wall);
        if world.dice.chance(60) {
            tokio::spawn(async move {
                let Ok(found) = store.find(id.partition(PARTITIONS), &[Query::Id(id)]).await else { return };
                let found = found.into_iter().next().flatten().map(Box::new);
                history.note(clock.true_now().wall, Happening::Seen { id, asked, found });
            });
            return;
        }
        let (reply, end) = oneshot::channel();
        let owner = world.owners[usize::from(id.partition(PARTITIONS).0)];
        world.tell(owner, Command::AwaitEnd { id, reply });
        let coverage = world.coverage.clone();
        tokio::spawn(async move {
            if let Ok(Some(EndedOrForgotten::Ended(ended))) = end.await {
                coverage.ends_awaited.count();
                let found = Some(Box::new(Found::Ended(*ended)));
                history.note(clock.true_now().wall, Happening::Seen { id, asked, found });
            }
        });
    }

    /// Somebody wants something of a task that was created earlier.
    pub async fn amend(&mut self, world: &mut World) {
        let known = self.known.lock().expect("no user panics").clone();
        if known.is_empty() {
            return;
        }
        // Mostly a recent one: the old ones have ended.
        let back = 1 + world.dice.below(known.len().min(25) as u64) as usize;
        let id = known[known.len() - back];
        let now = world.clock.true_now().wall;
        let what = match world.dice.below(12) {
            0..4 => Amending::Cancel,
            4..7 => Amending::Move(now + world.dice.up_to(Duration::from_secs(20))),
            7..9 => Amending::Run,
            9..11 => return self.change(world, id).await,
            _ => Amending::Retry,
        };
        self.send_amend(world, id, what);
    }

    /// Somebody looks a task up and wants it to do something else, unless it was changed meanwhile.
    async fn change(&mut self, world: &mut World, id: TaskId) {
        let found = world.store.find(id.partition(PARTITIONS), &[Query::Id(id)]).await.unwrap_or_default();
        let Some(Found::Live(task)) = found.into_iter().next().flatten() else { return };
        let mark = 1 + world.dice.below(1_000_000) as u32;
        let mut spec = (*task.spec).clone();
        spec.payload = marked(&spec.payload, mark);
        if world.dice.chance(30) {
            spec.target = target(world, id.queue);
        }
        // Some have looked long ago.
        let seen = task.revision.saturating_sub(u32::from(world.dice.chance(20)));
        let amendment = Amendment::Replace { spec: spec.into(), at: None };
        let amend = Amend { id, amendment, if_revision: Some(seen) };
        self.send(world, Amending::Change(mark), amend);
    }

    pub fn send_amend(&mut self, world: &mut World, id: TaskId, what: Amending) {
        let amendment = match what {
            Amending::Cancel => Amendment::Cancel,
            Amending::Move(at) => Amendment::Move(at),
            Amending::Run if world.bug == Some(Bug::RunIsOnlyAnswered) => Amendment::Expire,
            Amending::Retry if world.bug == Some(Bug::RetryKeepsTheCount) => Amendment::Run,
            Amending::Run => Amendment::Run,
            Amending::Retry => Amendment::Retry,
            Amending::Change(_) => panic!("a change says what it changes to"),
        };
        self.send(world, what, Amend::any(id, amendment));
    }

    fn send(&mut self, world: &mut World, what: Amending, amend: Amend) {
        self.next += 1;
        let (no, id) = (self.next, amend.id);
        let (history, clock, coverage) = (world.history.clone(), world.clock.clone(), world.coverage.clone());
        history.note(clock.true_now().wall, Happening::AmendCalled { no, id, what });
        let answer = ask(world, id.partition(PARTITIONS), Ask::Amend(amend));
        tokio::spawn(async move {
            let answer = answer.await;
            match (what, &answer) {
                (_, None | Some(Answer::Unknown)) => coverage.answers_unknown.count(),
                (Amending::Cancel, Some(Answer::Cancelled)) => coverage.cancels_won.count(),
                (Amending::Cancel, Some(_)) => coverage.cancels_lost.count(),
                (Amending::Move(_), Some(Answer::Amended(_))) => coverage.moves.count(),
                (Amending::Change(_), Some(Answer::Amended(_))) => coverage.changes.count(),
                (Amending::Change(_), Some(Answer::Outdated { .. })) => coverage.changes_outdated.count(),
                (Amending::Run, Some(Answer::Amended(_))) => coverage.runs.count(),
                (Amending::Retry, Some(Answer::Amended(_))) => coverage.retries_by_users.count(),
                _ => {}
            }
            let answer = answer.filter(|answer| *answer != Answer::Unknown);
            history.note(clock.true_now().wall, Happening::AmendAnswered { no, answer });
        });
    }

    /// Pauses or resumes a queue.
    pub fn toggle_queue(&mut self, world: &mut World) {
        let queue = *world.dice.pick(&[BLOCKING, FLOWING, LIMITED, EXCLUSIVE, PULLED]);
        let mut settings = world.queues.get(queue).clone();
        settings.paused = !settings.paused;
        if settings.paused {
            world.coverage.queue_pauses.count();
        }
        world.set_queue(queue, settings);
    }

    /// All queues go on.
    pub fn resume_all(&mut self, world: &mut World) {
        for queue in [BLOCKING, FLOWING, LIMITED, EXCLUSIVE, PULLED] {
            let mut settings = world.queues.get(queue).clone();
            settings.paused = false;
            world.set_queue(queue, settings);
        }
    }
}

/// Asks the node that should own the partition. `None`: nobody can say what became of it.
fn ask(world: &World, partition: PartitionId, ask: Ask) -> impl Future<Output = Option<Answer>> + use<> {
    let node = &world.nodes[world.owners[usize::from(partition.0)]];
    let (reply, answer) = oneshot::channel();
    let sent = match &node.process {
        Some(process) => process
            .commands
            .try_send(Command::Ask { partition, ask, reply, entries: Entries::default() })
            .is_ok(),
        None => false,
    };
    async move { if sent { answer.await.ok() } else { Some(Answer::NotOwner) } }
}

fn target(world: &mut World, queue: QueueId) -> Target {
    match world.dice.below(10) {
        _ if queue == PULLED => Target::Worker,
        0 => Target::Handler("late".into()),
        1..4 => Target::Destination(format!("host-{}", world.dice.below(2)).into()),
        _ => Target::Handler("work".into()),
    }
}

fn plan(world: &mut World) -> Plan {
    let at_first = *world.dice.pick(&[
        Trouble::None,
        Trouble::None,
        Trouble::None,
        Trouble::None,
        Trouble::Fails,
        Trouble::Fails,
        Trouble::AsksForTime,
        Trouble::Panics,
        Trouble::Hangs,
        Trouble::GivesUp,
    ]);
    let times = *world.dice.pick(&[1, 1, 2, 3, 9]);
    let millis = *world.dice.pick(&[0, 1, 10, 100, 1_000]);
    Plan { at_first, times, millis }
}
