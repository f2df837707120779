//! Whatever waits goes into one frame; everybody is answered after the sync, and after it is applied.

use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use punctual_store::embedded::disk::SimulatedDisk;
use punctual_store::embedded::disk::simulated::{Call, Fault};
use punctual_store::embedded::frame::{Batch, Sequence};
use punctual_store::embedded::journal::{AppendError, Class, Journal, Options};
use punctual_store::embedded::writer::{
    Completion, GroupCommit, GroupLimits, NotSubmitted, Outcome, Request, spawn,
};

use crate::world::{Frames, OPTIONS, open};

type Answers = Receiver<(u64, Outcome)>;

/// Sends the outcome and the number of the request.
#[derive(Debug)]
struct Waiting {
    number: u64,
    answers: SyncSender<(u64, Outcome)>,
}

impl Completion for Waiting {
    fn complete(self, outcome: Outcome) {
        let _ = self.answers.send((self.number, outcome));
    }
}

/// Numbers requests, and knows who was answered what.
struct Desk {
    answers: SyncSender<(u64, Outcome)>,
    inbox: Answers,
    next: u64,
}

impl Desk {
    fn new() -> Desk {
        let (answers, inbox) = sync_channel(10_000);
        Desk { answers, inbox, next: 0 }
    }

    fn request(&mut self, class: Class, records: &[&[u8]]) -> Request<Waiting> {
        let mut batch = Batch::default();
        records.iter().for_each(|record| batch.push(record));
        self.next += 1;
        Request { batch, class, waiting: Waiting { number: self.next - 1, answers: self.answers.clone() } }
    }

    /// Numbers and sequences, so far; `None` for what was refused.
    fn answered(&self) -> Vec<(u64, Option<u64>)> {
        self.inbox
            .try_iter()
            .map(|(number, outcome)| (number, outcome.ok().map(|sequence| sequence.0)))
            .collect()
    }
}

fn fresh(disk: &SimulatedDisk) -> Journal<SimulatedDisk> {
    open(disk, 0).expect("opened").0
}

#[test]
fn what_was_offered_goes_into_one_frame_with_one_sync() {
    let disk = SimulatedDisk::new(1);
    let mut desk = Desk::new();
    let mut applied: Frames = Vec::new();
    let apply = |sequence: Sequence, records: punctual_store::embedded::frame::Records<'_>| {
        applied.push((sequence.0, records.map(<[u8]>::to_vec).collect()));
    };
    let mut group = GroupCommit::new(fresh(&disk), GroupLimits::default(), apply);
    group.commit();
    let syncs = disk.calls(Call::Sync);
    for request in [desk.request(Class::New, &[b"a", b"b"]), desk.request(Class::End, &[b"c"])] {
        group.offer(request).expect("it fits");
    }
    assert_eq!(desk.answered(), [], "nobody is answered before the sync");
    group.commit();
    assert_eq!(desk.answered(), [(0, Some(0)), (1, Some(0))]);
    assert_eq!(disk.calls(Call::Sync), syncs + 1);
    group.offer(desk.request(Class::New, &[b"d"])).expect("it fits");
    drop(group.into_journal());
    let expected = [(0, vec![b"a".to_vec(), b"b".to_vec(), b"c".to_vec()]), (1, vec![b"d".to_vec()])];
    assert_eq!(applied, expected);
    assert_eq!(open(&disk, 0).expect("opened").2, expected);
}

#[test]
fn a_group_is_no_larger_than_its_limits_but_takes_one_request_of_any_size() {
    let disk = SimulatedDisk::new(1);
    let mut desk = Desk::new();
    let limits = GroupLimits { records_max: 3, bytes_max: 1_000, waiting_max: 10 };
    let mut group = GroupCommit::new(fresh(&disk), limits, |_, _| {});
    group.offer(desk.request(Class::New, &[b"a", b"b"])).expect("it fits");
    let two_more = group.offer(desk.request(Class::New, &[b"c", b"d"])).expect_err("too many records");
    let long = group.offer(desk.request(Class::New, &[&[0; 990]])).expect_err("too many bytes");
    group.offer(desk.request(Class::New, &[b"e"])).expect("it fits");
    group.commit();
    assert_eq!(desk.answered(), [(0, Some(0)), (3, Some(0))]);

    group.offer(long).expect("alone");
    let two_more = group.offer(two_more).expect_err("not with a long one");
    group.commit();
    group.offer(two_more).expect("it fits");
    group.offer(desk.request(Class::New, &[&[0; 20_000]])).expect_err("not with others");
    group.commit();
    assert_eq!(desk.answered(), [(2, Some(1)), (1, Some(2))]);

    group.offer(desk.request(Class::New, &[&[0; 20_000]])).expect("answered at once");
    assert!(group.is_empty());
    let (_, outcome) = desk.inbox.try_recv().expect("answered");
    assert!(matches!(outcome, Err(AppendError::TooLarge { .. })));
}

#[test]
fn on_a_full_disk_ends_are_written_and_the_rest_of_the_group_is_refused() {
    let disk = SimulatedDisk::new(1);
    disk.set_capacity(3 * OPTIONS.segment_bytes);
    let mut desk = Desk::new();
    let mut group = GroupCommit::new(fresh(&disk), GroupLimits::default(), |_, _| {});
    group.offer(desk.request(Class::New, &[&[0; 12_000]])).expect("it fits");
    group.commit();
    for class in [Class::New, Class::End, Class::New, Class::End] {
        group.offer(desk.request(class, &[&[desk.next as u8; 500]])).expect("it fits");
    }
    group.commit();
    assert_eq!(
        desk.answered(),
        [(0, Some(0)), (1, None), (3, None), (2, Some(1)), (4, Some(1))],
        "what is new is refused first"
    );
    drop(group);
    let (_, _, frames) = open(&disk, 0).expect("opened");
    assert_eq!(frames[1], (1, vec![vec![2; 500], vec![4; 500]]));
}

#[test]
fn everybody_hears_of_a_failure() {
    let disk = SimulatedDisk::new(1);
    let mut desk = Desk::new();
    let mut group =
        GroupCommit::new(fresh(&disk), GroupLimits::default(), |_, _| panic!("nothing is durable"));
    disk.fail_at(2, Fault::Io); // The first is the write, the second the sync.
    for _ in 0..3 {
        group.offer(desk.request(Class::New, &[b"x"])).expect("it fits");
    }
    group.commit();
    group.offer(desk.request(Class::End, &[b"y"])).expect("it fits");
    group.commit();
    let outcomes: Vec<String> =
        desk.inbox.try_iter().map(|(_, outcome)| outcome.expect_err("it failed").to_string()).collect();
    assert_eq!(outcomes.len(), 4);
    assert!(outcomes.iter().all(|outcome| *outcome == outcomes[0]), "{outcomes:?}");
}

#[test]
fn a_thread_writes_what_is_submitted_in_order_and_stops_when_all_of_it_is_written() {
    let disk = SimulatedDisk::new(1);
    let mut desk = Desk::new();
    let mut journal = fresh(&disk);
    journal.prepare_in_background().expect("started");
    let (submitter, writer) = spawn(journal, GroupLimits::default(), |_, _| {}).expect("started");
    for number in 0..500_u64 {
        let request = desk.request(Class::New, &[&number.to_le_bytes(), &[7; 250]]);
        submitter.submit(request).expect("it runs");
        if number == 250 {
            submitter.release_before(Sequence(0));
        }
    }
    drop(writer.stop());
    let answered = desk.answered();
    assert_eq!(answered.iter().map(|(number, _)| *number).collect::<Vec<_>>(), (0..500).collect::<Vec<_>>());
    assert!(answered.is_sorted_by_key(|(_, sequence)| sequence.expect("written")));
    let late = submitter.submit(desk.request(Class::New, &[b"late"]));
    assert!(matches!(late, Err(NotSubmitted::Stopped(_))));

    let (_, _, frames) = open(&disk, 0).expect("opened");
    let written: Vec<Vec<u8>> = frames.into_iter().flat_map(|(_, records)| records).collect();
    let numbers: Vec<&[u8]> = written.iter().step_by(2).map(Vec::as_slice).collect();
    assert_eq!(numbers, (0..500_u64).map(u64::to_le_bytes).collect::<Vec<_>>());
}

#[test]
fn while_one_frame_is_under_way_the_next_group_gathers() {
    let disk = SimulatedDisk::new(1);
    let mut desk = Desk::new();
    let (entered, first_is_applied) = sync_channel(10);
    let (go_on, wait) = sync_channel(10);
    let options = Options { segment_bytes: 1 << 20, ..OPTIONS };
    let (journal, _) = Journal::open(disk.clone(), options, Sequence(0), |_, _| Ok(())).expect("opened");
    let limits = GroupLimits { waiting_max: 1_000, ..GroupLimits::default() };
    let (submitter, writer) = spawn(journal, limits, move |sequence, _| {
        entered.send(sequence).expect("somebody listens");
        wait.recv().expect("somebody says so");
    })
    .expect("started");
    submitter.submit(desk.request(Class::New, &[b"first"])).expect("it runs");
    first_is_applied.recv().expect("applied");
    for _ in 0..1_000 {
        submitter.try_submit(desk.request(Class::New, &[b"one of many"])).expect("there is room");
    }
    let one_more = submitter.try_submit(desk.request(Class::New, &[b"too many"]));
    assert!(matches!(one_more, Err(NotSubmitted::Busy(_))));
    [(), ()].into_iter().for_each(|()| go_on.send(()).expect("it waits"));
    drop(submitter);
    writer.stop();
    let answered = desk.answered();
    assert_eq!(answered.len(), 1_001);
    assert!(
        answered[1..].iter().all(|(_, sequence)| *sequence == Some(1)),
        "all of them in the second frame"
    );
}
