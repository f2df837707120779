//! One run of one seed: a storm of faults, then calm, then judgement.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use punctual::shell::Command;
use punctual_core::{Change, WaitState};
use punctual_store::{Filter, Found, Listed, Query, Store};
use tokio::sync::oneshot;

use crate::bugs::Bug;
use crate::checkers::{self, Violation};
use crate::coverage::Coverage;
use crate::history::{Amending, Happening, Process};
use crate::targets::{PLANNED_PANIC, pass};
use crate::users::Users;
use crate::workers::Workers;
use crate::world::{PARTITIONS, World};

/// What a run came to.
pub struct Outcome {
    /// What was promised and not kept.
    pub violations: Vec<Violation>,
    /// What happened, and how often.
    pub coverage: Arc<Coverage>,
    /// The same for every run of the same seed.
    pub fingerprint: u64,
    /// How much happened.
    pub events: usize,
    /// The log, when asked for.
    pub log: Vec<String>,
}

/// After the last fault, everything has ended within this time.
const HEALED_WITHIN: Duration = Duration::from_secs(600);
/// After the last end, all history is dropped within this time: eighty seconds at most are promised, and what failed
/// in the storm is tried again after a while.
const PRUNED_WITHIN: Duration = Duration::from_secs(400);

thread_local! {
    /// A run stays on its thread, and so do its panics.
    static PANICS: RefCell<Vec<String>> = const { RefCell::new(Vec::new()) };
}

/// Planned panics are silent; any other is kept, and counts against the run.
pub fn listen_for_panics() {
    std::panic::set_hook(Box::new(|panic| {
        let text = panic.to_string();
        if !text.contains(PLANNED_PANIC) {
            PANICS.with_borrow_mut(|panics| panics.push(text));
        }
    }));
}

/// Runs a seed.
pub fn run(seed: u64, bug: Option<Bug>, keep_log: bool) -> Outcome {
    PANICS.with_borrow_mut(Vec::clear);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .expect("a runtime without IO can always be made");
    runtime.block_on(async {
        let mut world = World::new(seed, bug);
        let (mut users, workers) = (Users::default(), Workers::of(&world));
        storm(&mut world, &mut users, &workers).await;
        calm(&mut world).await;
        let mut unfinished = heal(&mut world, &mut users, &workers).await;
        if unfinished == 0 {
            users.rush(&mut world);
            unfinished = heal(&mut world, &mut users, &workers).await;
        }
        if unfinished == 0 {
            drill(&mut world, &mut users, &workers).await;
            unfinished = heal(&mut world, &mut users, &workers).await;
        }
        look_at_the_end(&world, &users).await;
        await_pruning(&mut world).await;
        judge(&world, unfinished, keep_log)
    })
}

async fn storm(world: &mut World, users: &mut Users, workers: &Workers) {
    for node in 0..world.nodes.len() {
        world.start(node).await;
    }
    let steps = 80 + world.dice.below(160);
    for _ in 0..steps {
        let wait = *world.dice.pick(&[1, 5, 20, 100, 400, 1_500]);
        pass(world.dice.up_to(Duration::from_millis(wait))).await;
        world.watch_over().await;
        world.power_may_go();
        step(world, users).await;
        workers.go_on(world);
        measure(world).await;
        world.power_may_come();
    }
}

/// One thing that users or fate do.
async fn step(world: &mut World, users: &mut Users) {
    let node = world.dice.below(world.nodes.len() as u64) as usize;
    match world.dice.below(100) {
        0..45 => {
            let count = *world.dice.pick(&[1, 1, 2, 3, 5]);
            users.create(world, count);
        }
        45..48 => users.repeat(world),
        48..64 => users.amend(world).await,
        64..68 => users.look(world),
        68..72 => users.toggle_queue(world),
        72..73 => {
            users.create(world, 60);
            world.coverage.floods.count();
        }
        73..77 if world.dice.chance(8) => users.deluge(world),
        73..77 => world.kill(node),
        77..84 if world.nodes[node].process.is_none() => world.start(node).await,
        77..80 => world.freeze(node),
        80..88 => world.thaw(node),
        88..92 => {
            let partition = world.dice.below(world.owners.len() as u64) as usize;
            world.hand_over(partition).await;
        }
        92..95 => step_clock(world, node),
        95..96 => {
            world.late_handler.store(true, Ordering::Relaxed);
            (0..world.nodes.len()).for_each(|node| world.tell(node, Command::ReceiversChanged));
        }
        _ => world.repair_ownership().await,
    }
}

fn step_clock(world: &mut World, node: usize) {
    let by = *world.dice.pick(&[300_000, 2_000_000, 30_000_000, 86_400_000_000]);
    let error = world.nodes[node].clock.wall_error_micros();
    // Clocks are put right again sooner or later, as time servers do.
    let step = if error != 0 {
        -error
    } else if world.dice.chance(50) {
        by
    } else {
        -by.min(30_000_000)
    };
    world.set_clock(node, step);
}

/// No more faults.
async fn calm(world: &mut World) {
    world.faulty.calm();
    if let Some(machine) = &world.machine {
        machine.start_again();
    }
    world.calm.store(true, Ordering::Relaxed);
    world.history.note(world.clock.true_now().wall, Happening::Calm);
    for node in 0..world.nodes.len() {
        let error = world.nodes[node].clock.wall_error_micros();
        world.set_clock(node, -error);
        world.thaw(node);
        if world.nodes[node].process.is_none() {
            world.start(node).await;
        }
        world.tell(node, Command::ReceiversChanged);
    }
}

/// Returns how many tasks had not ended when patience ran out.
async fn heal(world: &mut World, users: &mut Users, workers: &Workers) -> usize {
    users.resume_all(world);
    let began = world.clock.true_now().boot;
    loop {
        for _ in 0..5 {
            pass(Duration::from_secs(1)).await;
            world.watch_over().await;
            workers.go_on(world);
        }
        world.repair_ownership().await;
        measure(world).await;
        let live = release_blocked_lanes(world, users).await;
        if live == 0 || world.clock.true_now().boot.since(began) > HEALED_WITHIN {
            return live;
        }
    }
}

/// When all is well, a node dies for good, and users go on: nothing may be late but by what its trust promises.
async fn drill(world: &mut World, users: &mut Users, workers: &Workers) {
    let node = world.owners[world.dice.below(u64::from(PARTITIONS)) as usize];
    world.kill(node);
    world.coverage.drills.count();
    for _ in 0..10 {
        pass(Duration::from_secs(1)).await;
        world.watch_over().await;
        workers.go_on(world);
        users.create(world, 3);
    }
}

/// The operator looks at blocked lanes and retries their heads. Returns how many tasks have not ended.
async fn release_blocked_lanes(world: &mut World, users: &mut Users) -> usize {
    let page = world.store.list(&Filter::default(), None, 1_000).await.unwrap_or_default();
    let blocked: Vec<_> = page
        .tasks
        .iter()
        .filter_map(|listed| match listed {
            Listed::Live(task) if task.state == WaitState::Blocked => Some(task.id),
            _ => None,
        })
        .collect();
    for id in blocked {
        users.send_amend(world, id, Amending::Retry);
    }
    page.tasks.len()
}

/// Notes how each task ended, from the store itself, and what whoever asks is shown.
async fn look_at_the_end(world: &World, users: &Users) {
    let known = users.known.lock().expect("no user panics").clone();
    for id in known {
        let (partition, query) = (id.partition(PARTITIONS), [Query::Id(id)]);
        let found = world.store.find(partition, &query).await.unwrap_or_default();
        let end = match found.into_iter().next().flatten() {
            Some(Found::Ended(ended)) => Some(ended.end.state),
            Some(Found::Forgotten { state, .. }) => Some(state),
            Some(Found::Live(_)) | None => None,
        };
        world.history.note(world.clock.true_now().wall, Happening::Final { id, end });
        let asked = world.history.moment(world.clock.true_now().wall);
        let found = world.faulty.find(partition, &query).await.unwrap_or_default();
        let found = found.into_iter().next().flatten().map(Box::new);
        world.history.note(world.clock.true_now().wall, Happening::Seen { id, asked, found });
    }
}

/// Nothing happens any more, so that history grows old and must go.
async fn await_pruning(world: &mut World) {
    let began = world.clock.true_now().boot;
    let filter = Filter { ended: true, ..Filter::default() };
    loop {
        let left = world.store.list(&filter, None, 1_000).await.unwrap_or_default().tasks.len();
        if left == 0 {
            break;
        }
        if world.clock.true_now().boot.since(began) > PRUNED_WITHIN {
            world.history.note(world.clock.true_now().wall, Happening::HistoryLeft(left));
            break;
        }
        pass(Duration::from_secs(1)).await;
        world.watch_over().await;
    }
    count_forgotten_keys(world).await;
}

/// Keys of tasks that had ended and are unknown by now.
async fn count_forgotten_keys(world: &World) {
    let mut keys = BTreeMap::new();
    for (_, happening) in world.history.log().iter() {
        let Happening::Written { changes, fence } = happening else { continue };
        for change in changes {
            if let Change::Ended { task, .. } = change
                && let Some(identity) = task.spec.identity(task.id.queue)
            {
                keys.insert(identity, fence.partition);
            }
        }
    }
    for (identity, partition) in keys {
        let found = world.store.find(partition, &[Query::Identity(identity)]).await.unwrap_or_default();
        if found.iter().all(Option::is_none) {
            world.coverage.identities_forgotten.count();
        }
    }
}

async fn measure(world: &mut World) {
    for node in 0..world.nodes.len() {
        let (reply, measured) = oneshot::channel();
        if !world.nodes[node].is_heard() {
            continue;
        }
        let (owned_reply, owned) = oneshot::channel();
        world.tell(node, Command::Measure(reply));
        world.tell(node, Command::Owned(owned_reply));
        if let (Ok(load), Ok(owned)) = (measured.await, owned.await) {
            let (process, loaded) = (Process { node, life: world.nodes[node].life }, load.in_memory);
            world.history.note(world.clock.true_now().wall, Happening::Measured { process, loaded, owned });
        }
    }
}

fn judge(world: &World, unfinished: usize, keep_log: bool) -> Outcome {
    for panic in PANICS.take() {
        world.history.note(world.clock.true_now().wall, Happening::Panicked(panic));
    }
    let counts = world.faulty.counts();
    world.coverage.store_delays.add(counts.delays);
    world.coverage.store_requests_lost.add(counts.requests_lost);
    world.coverage.store_answers_lost.add(counts.answers_lost);
    world.coverage.store_writes_torn.add(counts.torn);
    let log = world.history.log().clone();
    let dropped = log.iter().filter(|(_, happening)| matches!(happening, Happening::Dropped { .. }));
    world.coverage.tasks_dropped.add(dropped.count() as u64);
    let mut violations = checkers::check_all(&log, &world.coverage);
    if unfinished > 0 {
        violations.push(Violation::new(
            "heals",
            format!("{unfinished} tasks had not ended {HEALED_WITHIN:?} after the last fault"),
        ));
    }
    let text =
        |(moment, happening): &(crate::history::Moment, Happening)| format!("{:?} {happening:?}", moment.at);
    Outcome {
        violations,
        coverage: world.coverage.clone(),
        fingerprint: world.history.fingerprint(),
        events: log.len(),
        log: if keep_log { log.iter().map(text).collect() } else { Vec::new() },
    }
}
