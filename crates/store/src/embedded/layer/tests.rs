//! A layer on top of another, against one plain tree.

use bytes::Bytes;

use super::*;

fn key(name: &str) -> Key {
    Key::from(&in_map(name)[..])
}

/// Under the names of the coordination map, where any bytes may follow.
fn in_map(name: &str) -> Vec<u8> {
    [&[3], name.as_bytes()].concat()
}

fn value(text: &'static str) -> Value {
    Value::Bytes(Bytes::from_static(text.as_bytes()))
}

#[test]
fn a_row_that_is_born_and_dies_in_a_layer_leaves_nothing() {
    let mut layer = Layer::default();
    layer.put(key("a"), value("1"), true);
    layer.put(key("a"), value("22"), false);
    assert_eq!(layer.get(&key("a")), Said::Is(value("22")));
    layer.delete(&key("a"));
    assert_eq!(layer.get(&key("a")), Said::Nothing);
    assert!(layer.is_empty());
    assert_eq!(layer.bytes(), 0);
}

#[test]
fn a_row_that_may_lie_below_leaves_a_deletion() {
    let mut layer = Layer::default();
    layer.put(key("a"), value("1"), false);
    layer.delete(&key("a"));
    layer.delete(&key("b"));
    assert_eq!((layer.get(&key("a")), layer.get(&key("b"))), (Said::IsNot, Said::IsNot));
    layer.put(key("b"), value("2"), false);
    assert_eq!(layer.get(&key("b")), Said::Is(value("2")));
}

#[test]
fn what_was_cleared_is_gone_below_too_and_can_come_again() {
    let mut layer = Layer::default();
    layer.put(key("b"), value("1"), false);
    layer.clear(key("a"), key("c"));
    assert_eq!(
        (layer.get(&key("a")), layer.get(&key("b")), layer.get(&key("c"))),
        (Said::IsNot, Said::IsNot, Said::Nothing)
    );
    layer.put(key("b"), value("2"), false);
    assert_eq!(layer.get(&key("b")), Said::Is(value("2")));
    layer.delete(&key("b"));
    assert_eq!(layer.get(&key("b")), Said::IsNot);
}

#[test]
fn a_slice_ends_with_the_last_value_asked_for() {
    let mut layer = Layer::default();
    for name in ["a", "b", "d"] {
        layer.put(key(name), value("x"), false);
    }
    layer.delete(&key("a"));
    layer.delete(&key("c"));
    let keys = |slice: Slice| slice.rows.into_iter().map(|(key, _)| key).collect::<Vec<_>>();
    assert_eq!(keys(layer.slice(&in_map("a"), &in_map("z"), 1)), [key("a"), key("b")]);
    assert_eq!(keys(layer.slice(&in_map("b"), &in_map("d"), 9)), [key("b"), key("c")]);
    assert_eq!(keys(layer.slice(&in_map("z"), &in_map("a"), 9)), []);
}

#[test]
fn rows_of_partitions_come_in_order_of_their_keys() {
    let mut layer = Layer::default();
    let rows: [&[u8]; 6] =
        [&[0], &[4, 255], &[5, 0, 0, 1], &[5, 0, 3, 0, 9], &[5, 1, 0, 2], &[5, 1, 0, 2, 0]];
    for row in [3, 0, 5, 1, 4, 2] {
        layer.put(Key::from(rows[row]), value("x"), true);
    }
    let keys = |from: &[u8], until: &[u8]| -> Vec<Vec<u8>> {
        layer.range(from, until).map(|(key, _)| key.as_slice().to_vec()).collect()
    };
    assert_eq!(keys(&[], &[255]), rows);
    assert_eq!(layer.all().count(), rows.len());
    assert_eq!(keys(&[5], &[6]), rows[2..]);
    assert_eq!(keys(&[5, 0], &[5, 1]), rows[2..4]);
    assert_eq!(keys(&[5, 0, 0, 1, 0], &[5, 1, 0, 2, 0]), rows[3..5]);
    assert_eq!(keys(&[1], &[5]), rows[1..2]);
}

#[test]
fn whoever_begins_and_writes_nothing_leaves_nothing() {
    // Each left what takes it back, until the next frame was durable.
    let mut layer = Layer::default();
    layer.begin(Sequence(7), Sequence(7));
    layer.put(key("a"), value("1"), false);
    for _ in 0..1_000 {
        layer.begin(Sequence(8), Sequence(7));
    }
    assert_eq!(layer.undos.len(), 2);
    layer.take_back(Sequence(7));
    assert!(layer.is_empty());
}

proptest::proptest! {
    #[test]
    fn what_is_taken_back_was_never_there(
        before in proptest::collection::vec((0u8..5, 0u8..12, 0u8..12), 0..30),
        under_way in proptest::collection::vec((0u8..5, 0u8..12, 0u8..12), 0..30),
        frames in 1..4usize,
    ) {
        let write = |layer: &mut Layer, &(kind, first, second): &(u8, u8, u8)| {
            let name = |number: u8| Key::from(&[3, number][..]);
            match kind {
                0 => layer.put(name(first), value("a value"), false),
                // Whoever says so knows it: nothing is below, and nothing was here.
                1 if layer.get(&name(first)) == Said::Nothing => layer.put(name(first), value("new"), true),
                1 | 2 => layer.delete(&name(first)),
                3 => layer.put(name(first), value("b"), false),
                _ => layer.clear(name(first), name(second)),
            }
        };
        let (mut layer, mut expected) = (Layer::default(), Layer::default());
        let mut frame = Sequence(1);
        for each in &before {
            layer.begin(frame, frame);
            write(&mut layer, each);
            write(&mut expected, each);
            frame = frame.next();
        }
        // Several frames on their way, of which the first finds no room.
        let first = frame;
        for part in under_way.chunks(under_way.len().div_ceil(frames).max(1)) {
            layer.begin(frame, first);
            part.iter().for_each(|each| write(&mut layer, each));
            frame = frame.next();
        }
        layer.take_back(first);
        proptest::prop_assert!(layer.all().eq(expected.all()));
        proptest::prop_assert_eq!((layer.cleared(), layer.bytes()), (expected.cleared(), expected.bytes()));
        // Also what tells whether a deletion must stay.
        for number in 0..12 {
            let key = Key::from(&[3, number][..]);
            layer.delete(&key);
            expected.delete(&key);
        }
        proptest::prop_assert!(layer.all().eq(expected.all()));
    }
}
