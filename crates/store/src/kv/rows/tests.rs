//! Every row reads back as it was written, and no bytes at all make the reader panic.

use proptest::option;
use proptest::prelude::*;

use std::sync::Arc;
use std::time::Duration;

use punctual_core::{Begun, End, EndedTask, Epoch, RetryPolicy, Spec, Target, Task, Waits};

use super::*;
use crate::Held;

fn timestamp() -> impl Strategy<Value = Timestamp> {
    any::<i64>().prop_map(Timestamp::from_micros)
}

fn text() -> impl Strategy<Value = Box<str>> {
    any::<String>().prop_map(String::into_boxed_str)
}

fn blob() -> impl Strategy<Value = Bytes> {
    any::<Vec<u8>>().prop_map(Bytes::from)
}

fn id() -> impl Strategy<Value = TaskId> {
    let birth = 0..=Timestamp::MAX.as_micros();
    (any::<u32>(), any::<u32>(), 0u8..=9, birth, any::<u64>()).prop_map(
        |(route, queue, level, birth, seq)| TaskId {
            route: punctual_core::Route::anywhere(route),
            queue: QueueId(queue),
            priority: Priority::new(level).unwrap_or_default(),
            birth: Timestamp::from_micros(birth),
            seq: Seq(seq),
        },
    )
}

fn obstacle() -> impl Strategy<Value = Obstacle> {
    prop_oneof![
        any::<u64>().prop_map(|lane| Obstacle::Lane(LaneId(lane))),
        any::<u64>().prop_map(Obstacle::Handler),
        any::<u64>().prop_map(Obstacle::Destination),
    ]
}

fn retry() -> impl Strategy<Value = RetryPolicy> {
    let growing = any::<(Duration, Duration, u32, u32)>().prop_map(|(min, max, factor, jitter)| {
        Waits::Growing { min, max, factor_percent: factor, jitter_percent: jitter }
    });
    let listed = prop::collection::vec(any::<Duration>(), 1..5).prop_map(|waits| Waits::Listed(waits.into()));
    (prop_oneof![growing, listed], any::<u32>(), any::<Option<Duration>>())
        .prop_map(|(waits, attempts_max, age_max)| RetryPolicy { waits, attempts_max, age_max })
}

fn target() -> impl Strategy<Value = Target> {
    prop_oneof![
        any::<String>().prop_map(|name| Target::Handler(name.into())),
        any::<String>().prop_map(|name| Target::Destination(name.into())),
        Just(Target::Worker),
    ]
}

fn spec() -> impl Strategy<Value = Spec> {
    let names = (option::of(text()), option::of(text()), option::of(text()));
    let times = (option::of(timestamp()), option::of(timestamp()), any::<Option<Duration>>());
    let carried = (blob(), prop_oneof![Just(Bytes::new()), blob()]);
    (timestamp(), names, target(), carried, option::of(retry()), times).prop_map(
        |(at, (lane, unique_key, name), target, carried, retry, (start_by, expires_at, timeout))| Spec {
            first_at: start_by,
            at,
            lane,
            unique_key,
            name,
            target,
            payload: carried.0,
            delivery: carried.1,
            retry,
            start_by,
            expires_at,
            timeout,
        },
    )
}

fn task() -> impl Strategy<Value = Task> {
    let states = prop_oneof![Just(WaitState::Scheduled), Just(WaitState::Retrying), Just(WaitState::Blocked)];
    let begun = any::<Option<(u64, Option<Duration>)>>();
    let filed = (any::<u32>(), timestamp(), option::of(obstacle()), states);
    let tried = (any::<(u32, u32, u16)>(), begun, any::<Option<String>>());
    (id(), spec(), filed, tried).prop_map(|(id, spec, filed, (counts, begun, error))| Task {
        id,
        spec: Arc::new(spec),
        revision: filed.0,
        wake_at: filed.1,
        parked: filed.2,
        state: filed.3,
        attempts: counts.0,
        forgiven: counts.1,
        crashes: counts.2,
        begun: begun.map(|(epoch, lease)| Begun { epoch: Epoch(epoch), lease }),
        last_error: error.map(Into::into),
    })
}

fn end_state() -> impl Strategy<Value = EndState> {
    let states = [EndState::Succeeded, EndState::Dead, EndState::Cancelled, EndState::Expired];
    prop::sample::select(states.to_vec())
}

fn ended_task() -> impl Strategy<Value = EndedTask> {
    (task(), end_state(), timestamp(), blob(), any::<Option<String>>()).prop_map(
        |(task, state, at, result, error)| {
            let end = End { state, at, result, error: error.map(Into::into) };
            EndedTask { task, end }
        },
    )
}

/// Written and read again, it is the same; and it is not read when a byte is missing.
fn survives<R: Row + PartialEq + fmt::Debug>(row: &R) -> Result<(), TestCaseError> {
    let bytes = encode(row);
    let read = decode::<R>(&bytes).map_err(|error| TestCaseError::fail(error.to_string()))?;
    prop_assert_eq!(&read, row);
    let shorter = &bytes[..bytes.len() - 1];
    prop_assert!(decode::<R>(shorter).is_err(), "a cut row is not taken for whole");
    Ok(())
}

/// Rows of buckets were shorter once: where the size is missing, it is not known.
fn survives_uncounted(row: &BucketRow) -> Result<(), TestCaseError> {
    let bytes = encode(row);
    prop_assert_eq!(&decode::<BucketRow>(&bytes).expect("it was just written"), row);
    let older = encode(&BucketRow { bytes: 0, ..row.clone() });
    let older = &older[..older.len() - 1];
    let read = decode::<BucketRow>(older).expect("an older version wrote it");
    prop_assert_eq!(read, BucketRow { bytes: 0, ..row.clone() });
    prop_assert!(decode::<BucketRow>(&older[..older.len() - 1]).is_err(), "a cut row is not taken for whole");
    Ok(())
}

proptest! {
    #[test]
    fn a_task_survives_its_row(row in task()) {
        survives(&row)?;
    }

    #[test]
    fn an_ended_task_survives_its_row(row in ended_task()) {
        survives(&row)?;
    }

    #[test]
    fn small_rows_survive(
        id in id(),
        obstacle in obstacle(),
        at in timestamp(),
        ended in option::of((end_state(), timestamp())),
        numbers: (u64, u32, Option<i64>),
        bytes in blob(),
    ) {
        let window = WindowId { queue: id.queue, priority: id.priority };
        let key = RowKey { wake_at: at, seq: id.seq };
        survives(&id)?;
        survives(&IdentityRow { id, ended })?;
        survives(&Held { obstacle, holder: Some(id) })?;
        survives(&Held { obstacle, holder: None })?;
        survives(&(window, at))?;
        survives(&Place::Window(window, key))?;
        survives(&Place::Parked(obstacle, key))?;
        survives(&MapRow { value: bytes, version: numbers.0, expires_at: numbers.2 })?;
        survives(&OwnerRow { epoch: numbers.0, owner: Some("owner".into()) })?;
        let bucket =
            BucketRow { hour: numbers.1, newest_finished: numbers.2, newest_dead: None, bytes: numbers.0 };
        survives_uncounted(&bucket)?;
    }

    #[test]
    fn no_bytes_make_the_reader_panic(mut bytes in prop::collection::vec(any::<u8>(), 0..400), honest: bool) {
        if let Some(version) = bytes.first_mut() && honest {
            *version = FORMAT;
        }
        let _ = decode::<Task>(&bytes);
        let _ = decode::<EndedTask>(&bytes);
        let _ = decode::<Place>(&bytes);
        let _ = decode::<IdentityRow>(&bytes);
        let _ = decode::<MapRow>(&bytes);
    }

    #[test]
    fn a_damaged_row_never_makes_the_reader_panic(row in ended_task(), at: prop::sample::Index, byte: u8) {
        let mut bytes = encode(&row).to_vec();
        let at = at.index(bytes.len());
        bytes[at] = byte;
        let _ = decode::<EndedTask>(&bytes);
    }
}

#[test]
fn a_row_of_a_newer_format_is_refused_by_name() {
    let error = decode::<TaskId>(&[FORMAT + 1, 0, 0]).expect_err("it is newer");
    let cause = std::error::Error::source(&error).expect("there is a cause").to_string();
    assert!(cause.contains("its format is 2, this program reads 1"), "{cause}");
}
