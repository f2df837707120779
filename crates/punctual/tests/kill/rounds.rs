//! The parent: starts the process, kills it, looks at what it left behind, and starts it again.

use std::collections::VecDeque;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::time::Duration;

use punctual::FolderTrouble;

use super::CHILD;
use super::checker::Checker;
use super::dice::Dice;
use super::lines::Line;

/// So many kills does one folder see: what must be read again and again would grow without end.
const KILLS_PER_FOLDER: u64 = 50;
/// A process that says nothing for so long hangs.
const PATIENCE: Duration = Duration::from_secs(120);
/// What is shown of the output when something is wrong.
const LAST_LINES: usize = 40;

/// When the process is killed.
struct Moment {
    /// After so many lines.
    lines: u64,
    /// Counted from when the store is open, or from the start.
    is_counted_from_open: bool,
    /// And so many turns of a loop later, so that it happens in the midst of something.
    spins: u64,
}

impl Moment {
    fn draw(dice: &mut Dice) -> Moment {
        let (in_a_moment, soon) = (1 << 12, 1 << 20);
        match dice.below(8) {
            // While it opens the store, or makes it.
            0 => Moment { lines: 0, is_counted_from_open: false, spins: dice.below(1 << 26) },
            1 => Moment { lines: 1 + dice.below(20), is_counted_from_open: false, spins: dice.below(soon) },
            2 => Moment { lines: dice.below(20), is_counted_from_open: true, spins: dice.below(soon) },
            3..6 => Moment {
                lines: dice.below(2_500),
                is_counted_from_open: true,
                spins: dice.below(in_a_moment),
            },
            _ => Moment { lines: dice.below(4_000), is_counted_from_open: true, spins: dice.below(soon) },
        }
    }
}

/// A process and what it says.
struct Life {
    child: Child,
    lines: Receiver<String>,
}

impl Life {
    fn start(arguments: &[&str]) -> Life {
        let program = std::env::current_exe().expect("this program has a path");
        let mut command = Command::new(program);
        let mut child =
            command.args(arguments).stdout(Stdio::piped()).spawn().expect("a process can be started");
        let mut output = BufReader::new(child.stdout.take().expect("it is piped"));
        // Few, so that the process is held up when nobody listens, and does not run far ahead.
        let (sender, lines) = sync_channel(4);
        std::thread::spawn(move || {
            let mut line = String::new();
            while output.read_line(&mut line).is_ok_and(|bytes| bytes > 0) {
                // What the kill cut off was never said.
                if line.ends_with('\n') && sender.send(line.trim_end().to_string()).is_err() {
                    return;
                }
                line.clear();
            }
        });
        Life { child, lines }
    }

    /// The next line; none when it has ended.
    fn next(&self) -> Option<String> {
        match self.lines.recv_timeout(PATIENCE) {
            Ok(line) => Some(line),
            Err(RecvTimeoutError::Disconnected) => None,
            Err(RecvTimeoutError::Timeout) => panic!("it hangs"),
        }
    }

    fn kill(&mut self) {
        self.child.kill().expect("it is ours to kill");
    }
}

impl Drop for Life {
    /// Nothing is left behind when a check fails.
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

/// One folder, its checker and the last lines that were heard.
struct Story<'a> {
    folder: &'a Path,
    checker: Checker,
    heard: VecDeque<String>,
}

pub fn run(rounds: u64, seed: u64) {
    let mut left = rounds;
    let mut folder_seed = seed;
    while left > 0 {
        let kills = left.min(KILLS_PER_FOLDER);
        let counts = one_folder(kills, folder_seed);
        println!("kill -9: seed {folder_seed}, {kills} kills, {counts:?}");
        left -= kills;
        folder_seed += 1;
    }
}

fn one_folder(kills: u64, seed: u64) -> super::checker::Counts {
    let place = tempfile::tempdir().expect("a folder");
    let folder = place.path().join("data");
    let mut story = Story { folder: &folder, checker: Checker::default(), heard: VecDeque::new() };
    let mut dice = Dice::new(seed);
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    for round in 0..kills {
        let _if_it_fails = Repeat { seed, round };
        let moment = Moment::draw(&mut dice);
        story.live_and_die(round, seed, &moment);
        runtime.block_on(story.verify());
    }
    let _if_it_fails = Repeat { seed, round: kills };
    story.finish();
    runtime.block_on(story.verify());
    let counts = story.checker.counts;
    assert!(
        kills < KILLS_PER_FOLDER || counts.runs > 1_000 && counts.cancelled > 0,
        "little happened: {counts:?}"
    );
    counts
}

/// Says how to do it again.
struct Repeat {
    seed: u64,
    round: u64,
}

impl Drop for Repeat {
    fn drop(&mut self) {
        let Repeat { seed, round } = self;
        if std::thread::panicking() {
            eprintln!("kill -9 failed in round {round}: PUNCTUAL_KILL_SEED={seed} repeats the plan");
        }
    }
}

impl Story<'_> {
    fn live_and_die(&mut self, life: u64, seed: u64, moment: &Moment) {
        let folder = self.folder.to_str().expect("a plain path");
        let mut process = Life::start(&[CHILD, folder, &life.to_string(), &seed.to_string()]);
        self.checker.begin_life();
        let mut is_counting = !moment.is_counted_from_open;
        let mut counted = 0;
        while !is_counting || counted < moment.lines {
            let Some(line) = process.next() else { panic!("it ended by itself: {:?}", process.child.wait()) };
            counted += u64::from(is_counting);
            is_counting |= self.hear(line) == Line::Opened;
        }
        (0..moment.spins).for_each(|spin| _ = std::hint::black_box(spin));
        process.kill();
        while let Some(line) = process.next() {
            self.hear(line);
        }
    }

    /// Everything ends, and the process by itself.
    fn finish(&mut self) {
        let mut process = Life::start(&[CHILD, self.folder.to_str().expect("a plain path")]);
        self.checker.begin_life();
        let mut last = None;
        while let Some(line) = process.next() {
            last = Some(self.hear(line));
        }
        assert!(process.child.wait().is_ok_and(|status| status.success()), "it ends well");
        assert_eq!(last, Some(Line::Stopped));
    }

    fn hear(&mut self, text: String) -> Line {
        let line = Line::parse(&text);
        self.heard.push_back(text);
        if self.heard.len() > LAST_LINES {
            self.heard.pop_front();
        }
        self.checker.hear(&line);
        line
    }

    /// Every frame, every table and every row is as it must be.
    async fn verify(&self) {
        match punctual::verify(self.folder, |_| {}).await {
            // It was killed before the first row was written.
            Ok(verified) if verified.rows.rows == 0 => assert_eq!(self.checker.counts.acknowledged, 0),
            Ok(verified) => assert_eq!(verified.rows.described, Vec::<String>::new(), "it is damaged"),
            // It was killed before there was a folder.
            Err(error) if matches!(error.trouble, FolderTrouble::Missing) => {
                assert_eq!(self.checker.counts.acknowledged, 0, "{error}");
            }
            Err(error) => panic!("{error}: {:?}", error.trouble),
        }
    }
}

impl Drop for Story<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.heard.iter().for_each(|line| eprintln!("  {line}"));
        }
    }
}
