//! When history is dropped: scripts of what happened, and what is ordered.

#![expect(clippy::unwrap_used, reason = "a script that cannot be read must stop the test")]

use std::fmt::Write;
use std::time::Duration;

use bytes::Bytes;
use punctual_core::{
    Change, End, EndState, Epoch, Fence, PartitionId, Priority, Prune, Pruned, Pruning, QueueId,
    QueueSettings, Queues, Route, Seq, Spec, Target, Task, TaskId, Timestamp,
};

/// Each line is a time in hours and minutes, what happened then, and to which partition and queue:
///
/// ```text
/// 0:00 take 0 | lose 0 | end 0 mail succeeded | tick | pruned next=1:30 | pruned more | pruned nothing | failed
/// 0:00 budget mail 1000 (how many bytes are kept; an end has 128) | pruned bytes=900 (left; more can go in a day)
/// 0:00 keep mail 2:00 (how long succeeded tasks are kept) | wake (says when it wants to be called)
/// ```
fn check(script: &str, expected: &str) {
    let mut world = World::default();
    world.queues.set(QueueId(1), QueueSettings::default());
    world.queues.set(QueueId(2), QueueSettings::default());
    for line in script.lines().map(str::trim).filter(|line| !line.is_empty()) {
        world.play(&line.split_whitespace().collect::<Vec<_>>());
    }
    let expected: Vec<&str> = expected.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let said: Vec<&str> = world.said.lines().collect();
    assert_eq!(said, expected);
}

#[derive(Default)]
struct World {
    pruning: Pruning,
    queues: Queues,
    epoch: u64,
    said: String,
}

impl World {
    fn play(&mut self, words: &[&str]) {
        let now = Timestamp::MIN + duration(words[0]);
        match words[1..] {
            ["take", partition] => {
                self.epoch += 1;
                self.pruning.taken(now, self.fence(partition), &self.queues, Duration::ZERO);
            }
            ["lose", partition] => self.pruning.lost(self.fence(partition).partition),
            ["end", partition, queue, state] => {
                let changes = [ended(now, queue_id(queue), state)];
                self.pruning.recorded(self.fence(partition), &changes, &self.queues);
            }
            ["keep", queue, time] => {
                let settings = QueueSettings { keep_succeeded: duration(time), ..QueueSettings::default() };
                self.queues.set(queue_id(queue), settings);
                self.pruning.retention_changed(now, queue_id(queue), Duration::ZERO);
            }
            ["budget", queue, bytes] => {
                let keep_bytes = Some(bytes.parse().unwrap());
                self.queues.set(queue_id(queue), QueueSettings { keep_bytes, ..QueueSettings::default() });
            }
            ["tick"] => {
                let prune = self.pruning.begin(now, &self.queues);
                self.say(words[0], prune);
            }
            ["pruned", what] => self.pruning.done(now, Some(pruned(what)), &self.queues),
            ["failed"] => self.pruning.done(now, None, &self.queues),
            ["wake"] => {
                let at = self.pruning.wake_at().map_or("never".into(), hours);
                writeln!(self.said, "{} wake {at}", words[0]).unwrap();
            }
            _ => panic!("no such line: {words:?}"),
        }
    }

    fn say(&mut self, now: &str, prune: Option<Prune>) {
        let said = match prune {
            Some(Prune { fence, queue, retention }) => {
                format!(
                    "prune {} {} {} {} {}",
                    fence.partition.0,
                    if queue == QueueId(1) { "mail" } else { "post" },
                    hours(retention.finished_before),
                    hours(retention.dead_before),
                    hours(retention.identity_before)
                ) + &retention.bytes_max.map_or(String::new(), |bytes| format!(" bytes={bytes}"))
            }
            None => "nothing".into(),
        };
        writeln!(self.said, "{now} {said}").unwrap();
    }

    fn fence(&self, partition: &str) -> Fence {
        Fence { partition: PartitionId(partition.parse().unwrap()), epoch: Epoch(self.epoch) }
    }
}

fn queue_id(name: &str) -> QueueId {
    QueueId(if name == "mail" { 1 } else { 2 })
}

fn duration(text: &str) -> Duration {
    let (hours, minutes) = text.split_once(':').unwrap();
    Duration::from_secs(3_600 * hours.parse::<u64>().unwrap() + 60 * minutes.parse::<u64>().unwrap())
}

fn hours(at: Timestamp) -> String {
    let minutes = at.as_micros() / 60_000_000;
    format!("{}{}:{:02}", if minutes < 0 { "-" } else { "" }, minutes.abs() / 60, minutes.abs() % 60)
}

fn pruned(what: &str) -> Pruned {
    match what {
        "more" => Pruned { buckets: 8, more: true, ..Pruned::default() },
        "nothing" => Pruned::default(),
        bytes if bytes.starts_with("bytes=") => {
            let bytes = bytes["bytes=".len()..].parse().unwrap();
            Pruned { bytes, next_in: Some(duration("24:00")), ..Pruned::default() }
        }
        next => Pruned { next_in: next.strip_prefix("next=").map(duration), ..Pruned::default() },
    }
}

fn ended(at: Timestamp, queue: QueueId, state: &str) -> Change {
    let state = if state == "dead" { EndState::Dead } else { EndState::Succeeded };
    let id =
        TaskId { route: Route::anywhere(0), queue, priority: Priority::default(), birth: at, seq: Seq(1) };
    let task = Task::born(id, Spec::new(Target::Worker, at).into());
    Change::Ended { from: task.place(), task, end: End { state, at, result: Bytes::new(), error: None } }
}

#[test]
fn history_is_looked_at_when_the_first_end_falls_due_and_then_when_the_store_says() {
    check(
        "
        0:00    take 0
        0:00    tick
        0:00    pruned nothing
        0:00    tick
        0:00    pruned nothing
        0:00    wake
        1:00    end 0 mail succeeded
        2:00    end 0 mail succeeded
        2:00    wake
        24:59   tick
        25:00   tick
        25:00   wake
        25:00   pruned next=1:00
        25:30   tick
        26:00   tick
        26:00   pruned nothing
        26:00   wake
        ",
        "
        0:00 prune 0 mail -24:00 -168:00 -336:00
        0:00 prune 0 post -24:00 -168:00 -336:00
        0:00 wake never
        2:00 wake 25:00
        24:59 nothing
        25:00 prune 0 mail 1:00 -143:00 -311:00
        25:00 wake never
        25:30 nothing
        26:00 prune 0 mail 2:00 -142:00 -310:00
        26:00 wake never
        ",
    );
}

#[test]
fn dead_tasks_are_kept_longer() {
    check(
        "
        0:00    take 0
        0:00    tick
        0:00    pruned nothing
        0:00    tick
        0:00    pruned nothing
        1:00    end 0 mail dead
        1:00    wake
        ",
        "
        0:00 prune 0 mail -24:00 -168:00 -336:00
        0:00 prune 0 post -24:00 -168:00 -336:00
        1:00 wake 169:00
        ",
    );
}

#[test]
fn one_look_at_a_time_and_those_who_waited_longer_go_first() {
    check(
        "
        0:00    take 0
        0:00    take 1
        0:10    tick
        0:10    tick
        0:10    pruned more
        0:10    tick
        0:10    pruned nothing
        0:10    tick
        0:10    pruned nothing
        0:10    tick
        0:10    pruned nothing
        0:10    tick
        ",
        "
        0:10 prune 0 mail -23:50 -167:50 -335:50
        0:10 nothing
        0:10 prune 0 post -23:50 -167:50 -335:50
        0:10 prune 1 mail -23:50 -167:50 -335:50
        0:10 prune 1 post -23:50 -167:50 -335:50
        0:10 prune 0 mail -23:50 -167:50 -335:50
        ",
    );
}

#[test]
fn what_failed_is_tried_again_later_and_later_and_once_an_hour_at_last() {
    let mut queues = Queues::default();
    queues.set(QueueId(1), QueueSettings::default());
    let (mut pruning, mut now) = (Pruning::default(), Timestamp::MIN);
    pruning.taken(now, Fence { partition: PartitionId(0), epoch: Epoch(1) }, &queues, Duration::ZERO);
    let mut waits = Vec::new();
    for _ in 0..12 {
        assert!(pruning.begin(now, &queues).is_some());
        pruning.done(now, None, &queues);
        let next = pruning.wake_at().expect("it is tried again");
        waits.push(next.since(now).as_secs());
        now = next;
    }
    assert_eq!(waits, [10, 20, 40, 80, 160, 320, 640, 1_280, 2_560, 3_600, 3_600, 3_600]);
}

#[test]
fn a_lost_partition_is_forgotten_and_an_answer_that_comes_too_late_is_nobodys() {
    check(
        "
        0:00    take 0
        0:00    tick
        0:00    lose 0
        0:00    end 0 mail succeeded
        0:01    pruned next=1:00
        0:01    wake
        0:02    take 0
        0:02    tick
        0:02    take 0
        0:02    failed
        0:02    tick
        0:02    pruned nothing
        0:02    tick
        0:02    pruned nothing
        0:02    wake
        ",
        "
        0:00 prune 0 mail -24:00 -168:00 -336:00
        0:01 wake never
        0:02 prune 0 mail -23:58 -167:58 -335:58
        0:02 prune 0 mail -23:58 -167:58 -335:58
        0:02 prune 0 post -23:58 -167:58 -335:58
        0:02 wake never
        ",
    );
}

#[test]
fn what_ends_during_a_look_is_not_forgotten_by_its_answer() {
    check(
        "
        0:00    take 0
        0:00    tick
        0:00    end 0 mail succeeded
        0:00    pruned nothing
        0:00    tick
        0:00    pruned nothing
        0:00    wake
        ",
        "
        0:00 prune 0 mail -24:00 -168:00 -336:00
        0:00 prune 0 post -24:00 -168:00 -336:00
        0:00 wake 24:00
        ",
    );
}

#[test]
fn a_queue_that_keeps_less_from_now_on_is_looked_at_now() {
    check(
        "
        0:00    take 0
        0:00    tick
        0:00    pruned nothing
        0:00    tick
        0:00    pruned nothing
        0:00    end 0 mail succeeded
        3:00    keep mail 2:00
        3:00    tick
        ",
        "
        0:00 prune 0 mail -24:00 -168:00 -336:00
        0:00 prune 0 post -24:00 -168:00 -336:00
        3:00 prune 0 mail 1:00 -165:00 -333:00
        ",
    );
}

#[test]
fn an_identity_is_never_forgotten_before_its_task() {
    let day = Duration::from_secs(24 * 3_600);
    let settings = QueueSettings { keep_succeeded: 30 * day, ..QueueSettings::default() };
    let retention = settings.retention(Timestamp::MIN + 100 * day);
    assert_eq!(retention.identity_before, Timestamp::MIN + 70 * day);
}

#[test]
fn a_new_owner_spreads_its_looks() {
    let mut queues = Queues::default();
    (1..=100).for_each(|queue| queues.set(QueueId(queue), QueueSettings::default()));
    let (mut pruning, spread) = (Pruning::default(), Duration::from_secs(600));
    for partition in 0..64 {
        let fence = Fence { partition: PartitionId(partition), epoch: Epoch(1) };
        pruning.taken(Timestamp::MIN, fence, &queues, spread);
    }
    let mut looks_per_minute = [0; 10];
    for second in 0..=600_u64 {
        let now = Timestamp::MIN + Duration::from_secs(second);
        while pruning.begin(now, &queues).is_some() {
            looks_per_minute[(second.max(1) - 1) as usize / 60] += 1;
            pruning.done(now, Some(Pruned::default()), &queues);
        }
    }
    assert_eq!(looks_per_minute.iter().sum::<usize>(), 6_400, "each once");
    assert!(looks_per_minute.iter().all(|looks| (500..800).contains(looks)), "{looks_per_minute:?}");
    assert_eq!(pruning.wake_at(), None);
}

#[test]
fn too_much_history_is_cut_by_shares_before_its_time() {
    check(
        "
        0:00    budget mail 1000
        0:00    take 0
        0:00    take 1
        0:00    lose 0
        0:00    tick
        0:00    pruned bytes=400
        0:00    tick
        0:00    pruned nothing
        0:01    take 0
        0:01    tick
        0:01    pruned bytes=500
        0:01    tick
        0:01    pruned nothing
        0:01    tick
        0:02    end 0 mail succeeded
        0:02    tick
        0:02    failed
        0:02    end 0 mail succeeded
        0:03    tick
        0:03    pruned bytes=420
        0:03    tick
        0:03    pruned bytes=300
        0:04    end 0 mail succeeded
        0:04    tick
        ",
        "
        0:00 prune 1 mail -24:00 -168:00 -336:00
        0:00 prune 1 post -24:00 -168:00 -336:00
        0:01 prune 0 mail -23:59 -167:59 -335:59
        0:01 prune 0 post -23:59 -167:59 -335:59
        0:01 nothing
        0:02 prune 0 mail -23:58 -167:58 -335:58 bytes=534
        0:03 prune 1 mail -23:57 -167:57 -335:57 bytes=340
        0:03 prune 0 mail -23:57 -167:57 -335:57 bytes=534
        0:04 nothing
        ",
    );
}

#[test]
fn a_queue_with_much_history_is_cut_when_it_is_found() {
    check(
        "
        0:00    budget mail 1000
        0:00    take 0
        0:00    tick
        0:00    pruned bytes=8000
        0:00    tick
        0:00    pruned more
        0:00    tick
        0:00    pruned nothing
        0:00    lose 0
        0:00    tick
        ",
        "
        0:00 prune 0 mail -24:00 -168:00 -336:00
        0:00 prune 0 mail -24:00 -168:00 -336:00 bytes=875
        0:00 prune 0 mail -24:00 -168:00 -336:00 bytes=875
        0:00 nothing
        ",
    );
}
