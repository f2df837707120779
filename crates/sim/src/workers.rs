//! Workers in processes of their own: they reserve tasks, hold them for a while, ask for more time, and report; some
//! too late, some twice, some never. They go on when nodes die, and report to whoever owns the task then.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use punctual::Settled;
use punctual::clock::SimulatedClock;
use punctual::shell::{Command, Entries, Reserve};
use punctual_core::{Answer, Ask, Attempt, Outcome, Timestamp, Token};
use tokio::sync::{mpsc, oneshot};

use crate::bugs::Bug;
use crate::coverage::Coverage;
use crate::dice::Dice;
use crate::history::{Happening, History, Process};
use crate::settings::PULLED;
use crate::targets::{Plan, Trouble, pass, result_of};
use crate::world::{PARTITIONS, World};

/// How often a worker that hears nothing certain reports again.
const TRIES_MAX: u32 = 8;
/// More time than a lost owner's trust and a recorded lease make together.
pub const MUCH_TIME: Duration = Duration::from_secs(12);

/// Where a partition's owner is to be found.
type Route = Option<(Process, mpsc::Sender<Command>)>;

/// All workers together.
#[derive(Clone)]
pub struct Workers {
    history: Arc<History>,
    clock: SimulatedClock,
    coverage: Arc<Coverage>,
    calm: Arc<AtomicBool>,
    bug: Option<Bug>,
    next: Arc<AtomicU64>,
    /// Who owned each partition when somebody last looked.
    routes: Arc<Mutex<Vec<Route>>>,
}

/// What a worker does with a task.
enum Deed {
    /// It says how it went, in time.
    Reports(Outcome),
    /// The same, after it has asked for more time.
    Prolongs(Outcome),
    /// The same, when its time is over.
    Oversleeps(Outcome),
    /// It is never heard of again.
    Vanishes,
}

impl Workers {
    pub fn of(world: &World) -> Workers {
        Workers {
            history: world.history.clone(),
            clock: world.clock.clone(),
            coverage: world.coverage.clone(),
            calm: world.calm.clone(),
            bug: world.bug,
            next: Arc::default(),
            routes: Arc::default(),
        }
    }

    /// Some ask for work, and all learn who owns what.
    pub fn go_on(&self, world: &mut World) {
        *self.routes.lock().expect("no worker panics") =
            world.owners.iter().map(|&node| route(world, node)).collect();
        for node in 0..world.nodes.len() {
            let max = if self.is_calm() { 20 } else { *world.dice.pick(&[0, 0, 1, 2, 4]) };
            if max > 0 && world.nodes[node].is_heard() {
                self.reserve(world, node, max);
            }
        }
    }

    fn reserve(&self, world: &mut World, node: usize, max: usize) {
        let Some((process, commands)) = route(world, node) else { return };
        let (wait, mut dice) = (world.dice.up_to(Duration::from_secs(2)), world.dice.fork());
        let time_to_run =
            *dice.pick(&[None, None, Some(Duration::from_secs(1)), Some(Duration::from_secs(8))]);
        let (reply, reserved) = oneshot::channel();
        let no = self.number();
        self.note(Happening::ReserveCalled { no });
        commands.try_send(Command::Reserve(Reserve { queue: PULLED, max, wait, time_to_run, reply })).ok();
        if dice.chance(5) {
            self.coverage.reserves_deserted.count();
            return self.note(Happening::ReserveAnswered { no });
        }
        let (workers, node_clock) = (self.clone(), world.nodes[node].clock.clone());
        tokio::spawn(async move {
            let attempts = reserved.await.unwrap_or_default();
            workers.note(Happening::ReserveAnswered { no });
            let counter = if attempts.is_empty() {
                &workers.coverage.reserves_in_vain
            } else {
                &workers.coverage.reserves_filled
            };
            counter.count();
            let copies = if workers.bug == Some(Bug::ReservedTwice) { 2 } else { 1 };
            for attempt in std::iter::repeat_n(attempts, copies).flatten() {
                workers.begin(process, node_clock.now().wall, attempt, dice.fork());
            }
        });
    }

    fn begin(&self, process: Process, wall: Timestamp, attempt: Attempt, dice: Dice) {
        let (token, spec, timeout) = (attempt.token, attempt.spec.clone(), attempt.timeout);
        self.note(Happening::Started { process, token, wall, spec, timeout });
        let work = Work { workers: self.clone(), process, token, until: self.now() + timeout, dice };
        tokio::spawn(work.run(Plan::from_bytes(&attempt.spec.payload)));
    }

    fn owner(&self, token: Token) -> Route {
        let routes = self.routes.lock().expect("no worker panics");
        routes.get(usize::from(token.id.partition(PARTITIONS).0)).cloned().flatten()
    }

    fn is_calm(&self) -> bool {
        self.calm.load(Ordering::Relaxed)
    }

    fn number(&self) -> u64 {
        self.next.fetch_add(1, Ordering::Relaxed)
    }

    fn note(&self, happening: Happening) {
        self.history.note(self.now(), happening);
    }

    fn now(&self) -> Timestamp {
        self.clock.true_now().wall
    }
}

fn route(world: &World, node: usize) -> Route {
    let process = world.nodes[node].process.as_ref()?;
    Some((Process { node, life: world.nodes[node].life }, process.commands.clone()))
}

/// One worker with one task.
struct Work {
    workers: Workers,
    /// Who gave it.
    process: Process,
    token: Token,
    /// The worker has it until then, as far as it was told.
    until: Timestamp,
    dice: Dice,
}

impl Work {
    async fn run(mut self, plan: Plan) {
        let takes = Duration::from_millis(u64::from(plan.millis)).min(self.left());
        match self.deed(plan) {
            Deed::Reports(outcome) => {
                pass(takes).await;
                self.report(outcome).await;
            }
            Deed::Prolongs(outcome) => {
                self.prolong().await;
                let takes = takes.min(self.left());
                pass(takes).await;
                self.report(outcome).await;
            }
            Deed::Oversleeps(outcome) => {
                self.workers.coverage.workers_overslept.count();
                pass(self.left()).await;
                self.stop(None);
                pass(self.dice.up_to(Duration::from_secs(4))).await;
                if self.dice.chance(50) {
                    self.ask_for(Duration::from_secs(1)).await;
                }
                self.say_until_heard(outcome).await;
            }
            Deed::Vanishes => {
                self.workers.coverage.workers_vanished.count();
                pass(self.left()).await;
                self.stop(None);
            }
        }
    }

    fn deed(&mut self, plan: Plan) -> Deed {
        let token = self.token;
        let succeeded = || Outcome::Succeeded(result_of(token));
        let failed = |retry_after| Outcome::Failed { error: "planned".into(), retry_after };
        let is_well = token.attempt > u32::from(plan.times);
        let outcome = match plan.at_first {
            _ if self.workers.is_calm() => return Deed::Reports(succeeded()),
            _ if self.dice.chance(10) => {
                self.workers.coverage.workers_released.count();
                Outcome::Interrupted
            }
            Trouble::Hangs if !is_well => return Deed::Vanishes,
            Trouble::Panics if !is_well => return Deed::Oversleeps(succeeded()),
            Trouble::Fails if !is_well => failed(None),
            Trouble::AsksForTime if !is_well => {
                self.workers.coverage.workers_asked_for_time.count();
                failed(Some(Duration::from_secs(4)))
            }
            Trouble::GivesUp if !is_well => Outcome::GaveUp("planned".into()),
            _ => succeeded(),
        };
        if self.dice.chance(25) { Deed::Prolongs(outcome) } else { Deed::Reports(outcome) }
    }

    /// Asks for more time, once or twice, and works until most of that is over.
    async fn prolong(&mut self) {
        for _ in 0..=self.dice.below(2) {
            pass(self.left() / 2).await;
            let more = self.left() + *self.dice.pick(&[Duration::from_secs(1), MUCH_TIME]);
            let left = self.left();
            tokio::time::timeout(left, self.ask_for(more)).await.ok();
        }
        let most = self.left() * 3 / 4;
        pass(most).await;
    }

    async fn ask_for(&mut self, more: Duration) {
        let (token, until) = (self.token, self.workers.now() + more);
        match self.touch(more).await {
            Some(Answer::Prolonged) => {
                self.until = until;
                self.workers.coverage.touches.count();
                self.workers.note(Happening::Prolonged { token, until });
            }
            Some(Answer::Late) => {
                self.workers.coverage.touches_late.count();
                self.workers.note(Happening::NotProlonged { token });
            }
            _ => {}
        }
    }

    async fn touch(&self, more: Duration) -> Option<Answer> {
        if self.workers.bug == Some(Bug::TouchIsIgnored) {
            return Some(Answer::Prolonged);
        }
        let (reply, answer) = oneshot::channel();
        let (_, commands) = self.workers.owner(self.token)?;
        let (partition, ask) = (self.token.id.partition(PARTITIONS), Ask::Touch(self.token, more));
        commands.try_send(Command::Ask { partition, ask, reply, entries: Entries::default() }).ok();
        answer.await.ok()
    }

    /// Is done, and says so until somebody has heard it.
    async fn report(&mut self, outcome: Outcome) {
        let is_in_time = self.workers.now() < self.until;
        self.stop(Some(outcome.clone()).filter(|_| is_in_time));
        self.say_until_heard(outcome).await;
    }

    async fn say_until_heard(&mut self, outcome: Outcome) {
        for _ in 0..TRIES_MAX {
            if self.say(&outcome).await {
                break;
            }
            self.workers.coverage.reports_repeated.count();
            pass(self.dice.up_to(Duration::from_secs(2))).await;
        }
        if self.dice.chance(10) {
            self.workers.coverage.reports_said_twice.count();
            self.say(&outcome).await;
        }
    }

    /// Says how it went, perhaps twice in one breath. Answers whether that was heard.
    async fn say(&mut self, outcome: &Outcome) -> bool {
        let token = self.token;
        let nos: Vec<u64> = (0..=u64::from(self.dice.chance(10))).map(|_| self.workers.number()).collect();
        for &no in &nos {
            self.workers.note(Happening::ReportCalled { no, token, outcome: outcome.clone() });
        }
        let answers = match self.workers.owner(token) {
            Some((process, commands)) => {
                self.settle(process, &commands, vec![(token, outcome.clone()); nos.len()]).await
            }
            None => None,
        };
        for (place, &no) in nos.iter().enumerate() {
            let settled = answers.as_ref().and_then(|answers| answers.get(place).copied());
            self.workers.note(Happening::ReportAnswered { no, settled });
        }
        let first = answers.and_then(|answers| answers.first().copied());
        !matches!(first, None | Some(Settled::NotOwner | Settled::Unknown))
    }

    async fn settle(
        &self,
        process: Process,
        commands: &mpsc::Sender<Command>,
        mut reports: Vec<(Token, Outcome)>,
    ) -> Option<Vec<Settled>> {
        let coverage = &self.workers.coverage;
        match self.workers.bug {
            Some(Bug::ReportIsOnlyAnswered) if matches!(reports[0].1, Outcome::Succeeded(_)) => {
                return Some(vec![Settled::Ended(punctual_core::EndState::Succeeded); reports.len()]);
            }
            Some(Bug::LateReportIsTaken) => {
                let (reply, running) = oneshot::channel();
                commands.try_send(Command::Running(vec![self.token.id], reply)).ok();
                if let Some(Some(token)) = running.await.ok().and_then(|running| running.first().copied()) {
                    reports.iter_mut().for_each(|report| report.0 = token);
                }
            }
            _ => {}
        }
        let (reply, settled) = oneshot::channel();
        commands.try_send(Command::Settle(reports, reply)).ok();
        let answers = settled.await.ok()?;
        match answers.first() {
            Some(Settled::Late) => coverage.reports_late.count(),
            Some(Settled::Ended(_)) => coverage.reports_ended.count(),
            Some(Settled::Waits(..)) => coverage.reports_put_off.count(),
            _ => return Some(answers),
        }
        if process != self.process && answers.first() != Some(&Settled::Late) {
            coverage.reports_to_new_owners.count();
        }
        Some(answers)
    }

    fn stop(&self, outcome: Option<Outcome>) {
        self.workers.note(Happening::Stopped { token: self.token, outcome });
    }

    fn left(&self) -> Duration {
        self.until.since(self.workers.now())
    }
}
