//! Random scripts: whatever happens, the promises hold, and after calm everything has ended once and left no trace.

use proptest::prelude::*;

use crate::script::World;

const SETTINGS: [&str; 4] = [
    "limits window_max=2 loaded_max=8 behind_max=1 parked_page=2 look_ahead=10 destination_waiting_max=1 half_batch_min=1 \
     destination_running_max=1 breaker_failures=2 crashes_max=1000 running_max=3 left_per_mark=2 unnoted_max=2",
    "queue q attempts=3 retry=3,9",
    "queue p attempts=3 retry=3,9 dead_letter exclusive run_now",
    "receivers h",
];

/// How much happens at one time before the clock moves on.
fn pause() -> impl Strategy<Value = f64> {
    prop_oneof![3 => Just(0.0), 2 => Just(1.0), 1 => Just(4.0), 1 => Just(25.0)]
}

fn accept() -> impl Strategy<Value = String> {
    let lane = prop_oneof![2 => Just(""), 3 => Just(" lane=x"), 1 => Just(" lane=y")];
    let due = prop_oneof![3 => 0..3i64, 2 => 3..30i64, 1 => 100..300i64];
    let queue = prop_oneof![3 => Just("q"), 1 => Just("p")];
    let target = prop_oneof![
        6 => Just(""), 1 => Just(" handler=g"), 2 => Just(" destination=host"), 1 => Just(" key=k conflict=replace"),
    ];
    let lasts = prop_oneof![4 => Just(None), 1 => (1..40i64).prop_map(Some)];
    (1..4usize, lane, due, queue, target, lasts).prop_map(|(count, lane, due, queue, target, lasts)| {
        let expires = lasts.map_or_else(String::new, |lasts| format!(" expires=+{}", due + lasts));
        format!("accept NEW*{count}{lane} due=+{due}{expires} queue={queue}{target}")
    })
}

fn report() -> impl Strategy<Value = String> {
    let word = prop_oneof![
        4 => Just("succeed"), 4 => Just("fail"), 1 => Just("give_up"), 1 => Just("interrupt"), 1 => Just("no_receiver"),
    ];
    (word, any::<prop::sample::Index>())
        .prop_map(|(word, index)| format!("{word} RUNNING{}", index.index(1 << 16)))
}

fn amend() -> impl Strategy<Value = String> {
    let word = prop_oneof![
        Just("cancel".to_owned()),
        (0..60i64).prop_map(|to| format!("move to=+{to}")),
        Just("change".to_owned()),
        (0..60i64).prop_map(|to| format!("change to=+{to}")),
        Just("run".to_owned()),
        Just("retry".to_owned()),
        Just("expire".to_owned()),
    ];
    (word, any::<prop::sample::Index>())
        .prop_map(|(word, index)| format!("{word} KNOWN{}", index.index(1 << 16)))
}

fn trouble() -> impl Strategy<Value = String> {
    let fixed = [
        "crash",
        "reload",
        "hand_over to=b",
        "hand_over to=a",
        "take_over by=b",
        "pause q",
        "resume q",
        "pause p",
        "resume p",
        "receivers h g",
        "receivers h",
        "hold_answers loads",
        "hold_answers parked",
        "hold_answers finds",
        "hold_store loads",
        "hold_store parked",
        "hold_store records",
        "hold_answers records",
        "let_store",
        "let_store",
        "let_store",
        "let_store",
        "step_clock 5",
        "step_clock -5",
        "step_clock -40",
    ];
    prop_oneof![
        prop::sample::select(fixed.to_vec()).prop_map(str::to_owned),
        (0..12).prop_map(|n| format!("tear after={n}"))
    ]
}

fn steps() -> impl Strategy<Value = Vec<(f64, String)>> {
    let step =
        prop_oneof![4 => accept(), 6 => report(), 2 => amend(), 3 => trouble(), 1 => Just("tick".to_owned())];
    prop::collection::vec((pause(), step), 1..80)
}

fn run(world: &mut World, steps: &[(f64, String)]) {
    world.echo = true;
    world.rounds_max = 2_000;
    for line in SETTINGS {
        world.line(line);
    }
    let mut at = 0.0;
    for (number, (pause, step)) in steps.iter().enumerate() {
        at += pause;
        if let Some(line) = world.make_concrete(step, number, at) {
            world.line(&format!("{at} {line}"));
        }
    }
    world.calm_down(at);
}

/// As many as `PROPTEST_CASES` says, or a thousand.
fn cases() -> u32 {
    std::env::var("PROPTEST_CASES").map_or(1_000, |cases| cases.parse().expect("PROPTEST_CASES is a number"))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(), max_shrink_time: 15_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn whatever_happens_everything_ends_once_and_in_order(steps in steps()) {
        let mut world = World::new();
        let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| run(&mut world, &steps)));
        prop_assert!(outcome.is_ok(), "{}", world.transcript());
    }
}
