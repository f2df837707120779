//! The transcripts in `docs/cli.md` and the tour of `README.md` stay true: each command in them is run again, and what it says is compared.
//!
//! Ids, times and lengths of time differ from run to run and are not compared. `scripts/cli-transcripts` runs this with
//! `UPDATE_TRANSCRIPTS=1`, which writes what was said into the page.

use std::path::Path;
use std::process::{Command, Stdio};

use crate::program::{PUNCTUAL, Server, read_until};

const BEGIN: &str = "```console";
const END: &str = "```";
/// Nothing prints this but the script around the commands.
const MARK: &str = "\u{1}";

#[test]
fn the_transcripts_of_the_page_are_true() {
    let server = Server::start();
    check(&server, "docs/cli.md", &[]);
}

#[test]
fn the_tour_of_the_readme_is_true() {
    let server = Server::start();
    // The reader is told to have this called. Here it takes a free port.
    let hello = server.folder.path().join("hello");
    std::fs::create_dir(&hello).unwrap();
    std::fs::write(hello.join("hello.txt"), "Hello!\n").unwrap();
    let mut called = Command::new("python3")
        .args(["-u", "-m", "http.server", "0", "--bind", "127.0.0.1"])
        .current_dir(&hello)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let said = read_until(called.stdout.as_mut().unwrap(), "/)");
    let called_at = said.rsplit_once("http://").unwrap().1.trim_end_matches("/)").to_owned();
    let asked_at = server.url.strip_prefix("http://").unwrap().to_owned();
    check(&server, "README.md", &[("localhost:8700", &asked_at), ("127.0.0.1:8000", &called_at)]);
    called.kill().unwrap();
    called.wait().unwrap();
}

/// Runs the commands of a page, and compares. Addresses are those of the page for the reader, and others for us.
fn check(server: &Server, page_name: &str, addresses: &[(&str, &str)]) {
    let page_path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(page_name);
    let page = std::fs::read_to_string(&page_path).unwrap();
    let commands = page.split('\n').filter_map(|line| line.strip_prefix("$ "));
    let commands: Vec<String> = commands.map(|command| replaced(command, addresses)).collect();
    let back: Vec<(&str, &str)> = addresses.iter().map(|(theirs, ours)| (*ours, *theirs)).collect();
    let outputs: Vec<String> =
        run_all(server, &commands).iter().map(|output| replaced(output, &back)).collect();
    assert_eq!(commands.len(), outputs.len(), "every command of {page_name} was run");
    let written = rewritten(&page, &outputs);
    if std::env::var_os("UPDATE_TRANSCRIPTS").is_some() {
        return std::fs::write(&page_path, written).unwrap();
    }
    for (number, (page, now)) in page.split('\n').zip(written.split('\n')).enumerate() {
        assert_eq!(
            masked(page),
            masked(now),
            "line {} of {page_name} is no longer true; run scripts/cli-transcripts and look at the difference",
            number + 1
        );
    }
    assert_eq!(page.split('\n').count(), written.split('\n').count(), "run scripts/cli-transcripts");
}

fn replaced(text: &str, pairs: &[(&str, &str)]) -> String {
    pairs.iter().fold(text.to_owned(), |text, (from, to)| text.replace(from, to))
}

/// What each command says, all of them in one shell. The server was started by us, so its words are taken from there.
fn run_all(server: &Server, commands: &[String]) -> Vec<String> {
    let mut script = String::from("exec 2>&1\n");
    for command in commands {
        let command = if command.starts_with("punctual serve") { ":" } else { command.as_str() };
        script +=
            &format!("{command}\ncode=$?; [ $code = 0 ] || echo \"(exit code $code)\"; printf '{MARK}'\n");
    }
    let folder = Path::new(PUNCTUAL).parent().unwrap().to_str().unwrap();
    let home = server.folder.path().to_str().unwrap();
    let output = Command::new("sh")
        .args(["-c", &script])
        .current_dir(home)
        .env("PATH", format!("{folder}:{}", std::env::var("PATH").unwrap()))
        .env("PUNCTUAL_SERVER", &server.url)
        .env("TZ", "Europe/Berlin")
        .env("NO_COLOR", "1")
        .output()
        .unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    let said = said.split_terminator(MARK).zip(commands);
    let said = said.map(|(said, command)| match command.starts_with("punctual serve") {
        true => server.announcement.clone(),
        false => said.to_owned(),
    });
    said.map(|said| said.replace(&server.url, "http://127.0.0.1:8700").replace(home, "~")).collect()
}

/// The page with these outputs after the commands.
fn rewritten(page: &str, outputs: &[String]) -> String {
    let mut outputs = outputs.iter();
    let (mut lines, mut is_transcript) = (Vec::new(), false);
    for line in page.split('\n') {
        match line {
            BEGIN => is_transcript = true,
            END => is_transcript = false,
            _ => {}
        }
        if !is_transcript || line == BEGIN {
            lines.push(line);
        } else if line.starts_with("$ ") {
            lines.push(line);
            let said = outputs.next().map(|said| said.trim_end()).unwrap_or_default();
            lines.extend(said.split('\n').filter(|_| !said.is_empty()));
        }
    }
    lines.join("\n")
}

/// A line without what differs from run to run.
fn masked(line: &str) -> String {
    let words = line.split(|letter: char| letter.is_whitespace() || "\"{}(),[]=".contains(letter));
    let mut out: Vec<&str> = Vec::new();
    for word in words.filter(|word| !word.is_empty()) {
        let is_dropped = matches!(word, "in" | "ago" | "CET" | "CEST" | "CST" | "CDT" | "JST")
            || matches!(word, "Mon" | "Tue" | "Wed" | "Thu" | "Fri" | "Sat" | "Sun");
        if is_dropped {
            continue;
        }
        let word = if differs(word) { "#" } else { word };
        if word != "#" || out.last() != Some(&"#") {
            out.push(word);
        }
    }
    out.join(" ")
}

/// An id, a date, a time of day, or a length of time.
fn differs(word: &str) -> bool {
    let is_id =
        word.len() == 40 && word.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit());
    let begins = word.starts_with(|letter: char| letter.is_ascii_digit());
    let is_time = begins
        && word.contains([':', '-'])
        && word.bytes().all(|b| b.is_ascii_digit() || b"T:.Z-".contains(&b));
    let number = word.trim_end_matches(|letter: char| letter.is_ascii_lowercase());
    let is_length =
        begins && number.len() < word.len() && matches!(&word[number.len()..], "d" | "h" | "m" | "s" | "ms");
    is_id || is_time || is_length || word == "now"
}
