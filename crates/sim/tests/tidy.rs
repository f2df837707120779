//! The house rules that no compiler checks, each with a message that says what to do.
//!
//! A rule is a pure function from a file to its offences, so that each can be shown a bad sample and be seen to
//! refuse it. What is forbidden is never spelled out whole in here, so that this file keeps its own rules.

use std::fs;
use std::path::{Path, PathBuf};

// ---------------------------------------------------------------------------------------------------------------
// The rules, applied to the workspace.
// ---------------------------------------------------------------------------------------------------------------

#[test]
fn dependency_arrows_point_down() {
    let offences = offences_in(|path| path.ends_with("Cargo.toml"), arrows_that_point_up);
    report(
        offences,
        "Move the code to the crate that may have the dependency; the arrows are in ARCHITECTURE.md.",
    );
}

#[test]
fn each_source_file_says_what_it_is_for() {
    let offences = offences_in(is_rust, missing_header);
    report(offences, "Start the file with `//!` and one sentence a stranger understands.");
}

#[test]
fn file_names_say_what_is_inside() {
    let offences = offences_in(|_| true, |path, _| vague_names(path));
    report(offences, "Name the file after the thing it holds, or the verb it does in the life of a task.");
}

#[test]
fn relative_links_lead_somewhere() {
    let root = workspace_root();
    let exists = |target: &str| root.join(target).exists();
    let offences = offences_in(|path| path.ends_with(".md"), |path, text| dead_links(path, text, exists));
    report(
        offences,
        "Correct the link, or write the page it promises. Links are relative to the file they are in.",
    );
}

#[test]
fn files_are_short_enough_to_read() {
    let offences = offences_in(is_rust, too_long);
    report(offences, "Split the file along the ideas in it.");
}

#[test]
fn exemptions_from_lints_state_a_reason() {
    let offences = offences_in(is_rust, lints_switched_off);
    report(
        offences,
        "Use `#[expect(…, reason = \"…\")]`: it states why, and complains when it is no longer needed.",
    );
}

#[test]
fn the_core_is_pure() {
    let offences = offences_in(|path| path.starts_with("crates/core/src/"), impure_words);
    report(
        offences,
        "Take `now` as an argument, return an effect instead of waiting, and use FxHashMap or BTreeMap.",
    );
}

#[test]
fn nothing_is_left_unfinished_or_untested() {
    let offences = offences_in(is_rust, unfinished);
    report(offences, "Finish it, or take it out. A test that is not run is not a test.");
}

#[test]
fn decisions_are_numbered_and_linked() {
    let offences = untidy_decisions(&workspace_files());
    report(offences, "Number decisions from 0001 without a gap, and link each from the file it explains.");
}

#[test]
fn no_file_knows_the_machine_it_was_written_on() {
    let offences = offences_in(|_| true, machine_paths);
    report(offences, "Use a path relative to the repository, or ask for one.");
}

#[test]
fn the_walk_sees_the_workspace() {
    // Every rule above would pass on an empty list.
    let files = workspace_files();
    for expected in ["Cargo.toml", "crates/core/src/lib.rs", "crates/sim/tests/tidy.rs", "CONTRIBUTING.md"] {
        assert!(files.iter().any(|file| file.path == expected), "{expected} was not seen");
    }
    let strayed =
        files.iter().find(|file| file.path.starts_with("target/") || file.path.starts_with(".git/"));
    assert!(strayed.is_none(), "what is not ours was read: {strayed:?}");
}

// ---------------------------------------------------------------------------------------------------------------
// The rules themselves.
// ---------------------------------------------------------------------------------------------------------------

/// Which of our crates each shipped crate may use. The crates of `FOR_DEVELOPMENT` may use anything.
const ARROWS: [(&str, &[&str]); 5] = [
    ("punctual-core", &[]),
    ("punctual-store", &["punctual-core"]),
    ("punctual", &["punctual-core", "punctual-store", "punctual-client"]),
    ("punctual-client", &[]),
    ("punctual-server", &["punctual-core", "punctual-store", "punctual", "punctual-client"]),
];
const FOR_DEVELOPMENT: [&str; 2] = ["punctual-sim", "punctual-bench"];

/// No async, serialisation, logging or randomness in the core. Its tests may use what they like.
const NOT_IN_CORE: [&str; 6] = ["tokio", "serde", "serde_json", "tracing", "log", "rand"];

fn arrows_that_point_up(path: &str, manifest: &str) -> Vec<String> {
    let Some(name) = package_name(manifest) else {
        return Vec::new(); // The workspace's own manifest.
    };
    if FOR_DEVELOPMENT.contains(&name.as_str()) {
        return Vec::new();
    }
    let Some((_, may_use)) = ARROWS.iter().find(|(crate_name, _)| *crate_name == name) else {
        return vec![format!("{path}: {name} is not in the table of arrows; add it, with a decision record")];
    };
    let mut offences = Vec::new();
    for (section, dependency) in dependencies(manifest) {
        let is_ours = dependency == "punctual" || dependency.starts_with("punctual-");
        let is_shipped = !section.contains("dev-dependencies");
        let is_impure = name == "punctual-core" && NOT_IN_CORE.contains(&dependency.as_str());
        // The engine's tests drive it over the in-memory store. That arrow ships with nothing.
        let is_test_bed = name == "punctual-core" && dependency == "punctual-store" && !is_shipped;
        let points_up = is_ours && !may_use.contains(&dependency.as_str()) && !is_test_bed;
        if points_up || (is_impure && is_shipped) {
            offences.push(format!("{path}: {name} must not depend on {dependency} ({section})"));
        }
    }
    offences
}

fn package_name(manifest: &str) -> Option<String> {
    let (_, package) = manifest.split_once("[package]")?;
    let value = package.lines().find_map(|line| line.trim().strip_prefix("name"))?;
    Some(value.trim_matches([' ', '=', '"']).to_string())
}

/// The section and the crate of each dependency, in any of the ways Cargo lets one be written.
fn dependencies(manifest: &str) -> Vec<(String, String)> {
    let mut found: Vec<(String, String)> = Vec::new();
    let mut section = String::new();
    for line in manifest.lines() {
        let line = line.split('#').next().unwrap_or_default().trim();
        if let Some(header) = line.strip_prefix('[') {
            section = header.trim_end_matches(']').to_string();
            if let Some((_, name)) = section.split_once("dependencies.") {
                found.push((section.clone(), name.to_string()));
            }
        } else if let Some((key, value)) = line.split_once('=') {
            let renamed = value.split_once("package").and_then(|(_, rest)| rest.split('"').nth(1));
            let key = key.split('.').next().unwrap_or_default().trim().trim_matches('"');
            if section.ends_with("dependencies") {
                found.push((section.clone(), renamed.unwrap_or(key).to_string()));
            } else if section.contains("dependencies.") && key == "package" {
                found.push((section.clone(), value.trim_matches([' ', '"']).to_string()));
            }
        }
    }
    found
}

fn missing_header(path: &str, text: &str) -> Vec<String> {
    if text.starts_with("//!") { Vec::new() } else { vec![format!("{path}: no `//!` on the first line")] }
}

fn vague_names(path: &str) -> Vec<String> {
    const VAGUE: [&str; 8] = ["util", "utils", "helper", "helpers", "misc", "common", "manager", "managers"];
    let is_vague = |word: &str| VAGUE.contains(&word.to_lowercase().as_str());
    match path.split(['/', '.', '_', '-']).find(|word| is_vague(word)) {
        Some(word) => vec![format!("{path}: `{word}` says nothing")],
        None => Vec::new(),
    }
}

fn dead_links(path: &str, text: &str, exists: impl Fn(&str) -> bool) -> Vec<String> {
    let mut offences = Vec::new();
    for (number, link) in relative_links(text) {
        let file = link.split('#').next().unwrap_or_default();
        let is_dead = match resolve(path, file) {
            Some(target) => !exists(&target),
            None => true,
        };
        if is_dead {
            offences.push(format!("{path}:{number}: {link} leads nowhere"));
        }
    }
    offences
}

/// The targets of inline links and of link definitions, outside code, that name a file.
fn relative_links(text: &str) -> Vec<(usize, String)> {
    let mut links = Vec::new();
    let mut in_fence = false;
    for (number, line) in (1..).zip(text.lines()) {
        if line.trim_start().starts_with("```") {
            in_fence = !in_fence;
        }
        if in_fence {
            continue;
        }
        // Even pieces are prose, odd ones code. A link text in code leaves `](target)` to the prose after it.
        let prose: String = line.split('`').step_by(2).collect::<Vec<_>>().join("code");
        let inline = prose.split("](").skip(1).filter_map(|rest| rest.split(')').next());
        let definition =
            prose.strip_prefix('[').and_then(|rest| rest.split_once("]: ")).map(|(_, target)| target);
        for target in inline.chain(definition) {
            let target = target.split_whitespace().next().unwrap_or_default().trim_matches(['<', '>']);
            let is_elsewhere = target.contains("://") || target.starts_with("mailto:");
            if !is_elsewhere && !target.starts_with('#') {
                links.push((number, target.to_string()));
            }
        }
    }
    links
}

/// Where a link leads, from the root of the workspace; nothing if it leads out of it.
fn resolve(from: &str, link: &str) -> Option<String> {
    if link.starts_with('/') {
        return None;
    }
    let mut parts: Vec<&str> = from.split('/').collect();
    parts.pop();
    for part in link.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop()?;
            }
            name => parts.push(name),
        }
    }
    Some(parts.join("/"))
}

fn too_long(path: &str, text: &str) -> Vec<String> {
    const LINES_MAX: usize = 600;
    let lines = text.lines().count();
    if lines > LINES_MAX { vec![format!("{path}: {lines} lines, at most {LINES_MAX}")] } else { Vec::new() }
}

fn lints_switched_off(path: &str, text: &str) -> Vec<String> {
    let openings = ["#[", "#![", ", "].map(|before| format!("{before}allow("));
    lines_where(path, text, |line| openings.iter().any(|opening| line.contains(opening)))
}

fn impure_words(path: &str, text: &str) -> Vec<String> {
    const IMPURE: [&str; 3] = ["SystemTime", "Instant", "async"];
    lines_where(path, text, |line| {
        // Prose may name what the code must not.
        let code = line.split("//").next().unwrap_or_default();
        let is_name = |c: char| c.is_alphanumeric() || c == '_';
        code.split(|c| !is_name(c)).any(|word| IMPURE.contains(&word))
            || ["HashMap", "HashSet"].iter().any(|name| makes_new(code, name))
    })
}

/// `FxHashMap` has no `new`, so only the randomly ordered one is found.
fn makes_new(code: &str, type_name: &str) -> bool {
    code.contains(&format!("{type_name}::new("))
}

fn unfinished(path: &str, text: &str) -> Vec<String> {
    let macros = ["todo", "unimplemented", "dbg"].map(|name| format!("{name}!"));
    let skipped = ["#[", ", ", "```"].map(|before| format!("{before}ignore"));
    let is_skipped = |line: &str| {
        line.contains(&skipped[0])
            || (line.contains("cfg_attr") && line.contains(&skipped[1]))
            || (line.trim_start().starts_with("//") && line.contains(&skipped[2]))
    };
    lines_where(path, text, |line| is_skipped(line) || macros.iter().any(|name| line.contains(name)))
}

fn untidy_decisions(files: &[File]) -> Vec<String> {
    let mut offences = Vec::new();
    let mut expected = 1;
    for file in files {
        let Some(name) = file.path.strip_prefix("docs/decisions/").filter(|name| *name != "README.md") else {
            continue;
        };
        if !(name.starts_with(&format!("{expected:04}-")) && name.ends_with(".md")) {
            offences.push(format!("{}: expected {expected:04}-what-was-decided.md", file.path));
        }
        expected += 1;
        if !files.iter().any(|other| other.path != file.path && other.text.contains(name)) {
            offences.push(format!("{}: no other file links to it", file.path));
        }
    }
    offences
}

fn machine_paths(path: &str, text: &str) -> Vec<String> {
    let folders = ["work", "root", "home", "Users"].map(|folder| format!("/{folder}/"));
    // A folder of that name within a path or an address is harmless.
    let is_absolute = |before: &str| {
        !before.ends_with(|c: char| c.is_alphanumeric() || "._-~*}>".contains(c)) && !before.ends_with(":/")
    };
    lines_where(path, text, |line| {
        folders.iter().any(|folder| line.match_indices(folder).any(|(at, _)| is_absolute(&line[..at])))
    })
}

// ---------------------------------------------------------------------------------------------------------------
// Reading the workspace.
// ---------------------------------------------------------------------------------------------------------------

#[derive(Debug)]
struct File {
    /// From the root of the workspace, with forward slashes.
    path: String,
    text: String,
}

fn workspace_root() -> PathBuf {
    // Asked for when run, not when built: two checkouts may share one target folder, and so one binary.
    let sim = std::env::var_os("CARGO_MANIFEST_DIR").expect("run by cargo, which says where the crate is");
    Path::new(&sim).join("../..")
}

/// Every text file of the workspace that is ours, in the order of their paths.
fn workspace_files() -> Vec<File> {
    let root = workspace_root();
    let ignored = fs::read_to_string(root.join(".gitignore")).unwrap_or_default();
    let mut skipped: Vec<&str> = ignored.lines().map(|line| line.trim_matches('/')).collect();
    skipped.extend([".git", "target"]);
    let mut files = Vec::new();
    walk(&root, "", &skipped, &mut files);
    files.sort_by(|a, b| a.path.cmp(&b.path));
    files
}

fn walk(folder: &Path, prefix: &str, skipped: &[&str], files: &mut Vec<File>) {
    let entries =
        fs::read_dir(folder).unwrap_or_else(|error| panic!("reading {}: {error}", folder.display()));
    for entry in entries.flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let path = format!("{prefix}{name}");
        let Ok(kind) = entry.file_type() else { continue };
        if skipped.contains(&name.as_str()) {
            continue;
        }
        if kind.is_dir() {
            walk(&entry.path(), &format!("{path}/"), skipped, files);
        } else if let Ok(text) = fs::read_to_string(entry.path()) {
            // What is not text holds no sentence to check.
            files.push(File { path, text });
        }
    }
}

fn is_rust(path: &str) -> bool {
    path.ends_with(".rs")
}

fn offences_in(applies: impl Fn(&str) -> bool, rule: impl Fn(&str, &str) -> Vec<String>) -> Vec<String> {
    let files = workspace_files();
    files.iter().filter(|file| applies(&file.path)).flat_map(|file| rule(&file.path, &file.text)).collect()
}

fn lines_where(path: &str, text: &str, is_offence: impl Fn(&str) -> bool) -> Vec<String> {
    let offences = (1..).zip(text.lines()).filter(|(_, line)| is_offence(line));
    offences.map(|(number, line)| format!("{path}:{number}: {}", line.trim())).collect()
}

fn report(offences: Vec<String>, what_to_do: &str) {
    assert!(offences.is_empty(), "\n  {}\n{what_to_do}\n", offences.join("\n  "));
}

// ---------------------------------------------------------------------------------------------------------------
// Each rule refuses a bad sample, and lets a good one pass.
// ---------------------------------------------------------------------------------------------------------------

mod the_rule_refuses {
    use super::*;

    #[test]
    fn arrows_up() {
        let manifest = |name: &str, rest: &str| format!("[package]\nname = \"{name}\"\n\n{rest}");
        let refused =
            |name: &str, rest: &str| arrows_that_point_up("Cargo.toml", &manifest(name, rest)).len();

        assert_eq!(refused("punctual-core", "[dependencies]\npunctual-store = { workspace = true }"), 1);
        assert_eq!(refused("punctual-core", "[dependencies]\ntokio.workspace = true\nbytes = \"1\""), 1);
        assert_eq!(
            refused("punctual-core", "[dependencies]\nclock = { package = \"tokio\", version = \"1\" }"),
            1
        );
        assert_eq!(refused("punctual-core", "[dependencies.serde]\nversion = \"1\""), 1);
        assert_eq!(refused("punctual-core", "[dependencies.words]\npackage = \"log\""), 1);
        assert_eq!(refused("punctual-core", "[target.'cfg(unix)'.dependencies]\nrand = \"1\""), 1);
        assert_eq!(refused("punctual-store", "[dependencies]\npunctual = \"1\""), 1);
        assert_eq!(refused("punctual", "[dev-dependencies]\npunctual-sim = \"1\""), 1);
        assert_eq!(refused("punctual", "[build-dependencies]\npunctual-bench = \"1\""), 1);
        assert_eq!(refused("punctual-sixth", ""), 1);

        assert_eq!(
            refused("punctual-core", "[dependencies]\nbytes = \"1\"\n[dev-dependencies]\nrand = \"1\""),
            0
        );
        assert_eq!(
            refused("punctual-core", "[dev-dependencies]\npunctual-store = { path = \"../store\" }"),
            0
        );
        assert_eq!(refused("punctual", "[dependencies]\npunctual-core = \"1\"\npunctual-store = \"1\""), 0);
        assert_eq!(refused("punctual-sim", "[dependencies]\npunctual = \"1\"\ntokio = \"1\""), 0);
    }

    #[test]
    fn files_without_a_header() {
        assert_eq!(missing_header("wheel.rs", "use std::fmt;\n//! Timers.\n").len(), 1);
        assert_eq!(missing_header("wheel.rs", "").len(), 1);
        assert_eq!(missing_header("wheel.rs", "//! Timers.\n").len(), 0);
    }

    #[test]
    fn vague_file_names() {
        for path in ["src/utils.rs", "src/task_manager.rs", "tests/common/mod.rs", "docs/Misc.md"] {
            assert_eq!(vague_names(path).len(), 1, "{path}");
        }
        assert_eq!(vague_names("crates/core/src/wheel.rs").len(), 0);
    }

    #[test]
    fn links_that_lead_nowhere() {
        let exists = |target: &str| ["README.md", "docs/states.md"].contains(&target);
        let dead = |text: &str| dead_links("docs/protocol.md", text, exists).len();

        assert_eq!(dead("See [the states](state.md)."), 1);
        assert_eq!(dead("See [`State`](state.md#top) and [that](gone.md \"title\")."), 2);
        assert_eq!(dead("[states]: ../states.md"), 1);
        assert_eq!(dead("[out](../../README.md) and [root](/README.md)"), 2);
        assert_eq!(dead("```text\n[a](gone.md)\n```\n[b](gone.md)"), 1);

        assert_eq!(dead("[a](states.md#here), [b](../README.md), [c](https://example.org/x), [d](#here)"), 0);
        assert_eq!(dead("Write `[a](gone.md)` to link."), 0);
    }

    #[test]
    fn long_files() {
        assert_eq!(too_long("wheel.rs", &"\n".repeat(601)).len(), 1);
        assert_eq!(too_long("wheel.rs", &"\n".repeat(600)).len(), 0);
    }

    #[test]
    fn lints_switched_off_without_a_reason() {
        for before in ["#[", "    #![", "#[cfg_attr(test, "] {
            let text = format!("{before}allow(dead_code)]");
            assert_eq!(lints_switched_off("wheel.rs", &text).len(), 1, "{text}");
        }
        let text = "#[expect(dead_code, reason = \"comes later\")]\nfn allow(x: u8) {}";
        assert_eq!(lints_switched_off("wheel.rs", text).len(), 0);
    }

    #[test]
    fn an_impure_core() {
        for text in
            ["use std::time::Instant;", "SystemTime::UNIX_EPOCH", "pub async fn f() {}", "HashSet::new()"]
        {
            assert_eq!(impure_words("crates/core/src/wheel.rs", text).len(), 1, "{text}");
        }
        let text = "// Not async, and no Instant.\nlet instants = FxHashMap::default();";
        assert_eq!(impure_words("crates/core/src/wheel.rs", text).len(), 0);
    }

    #[test]
    fn unfinished_work_and_skipped_tests() {
        for name in ["todo", "unimplemented", "dbg"] {
            assert_eq!(unfinished("wheel.rs", &format!("    {name}!(x)")).len(), 1, "{name}");
        }
        for before in ["#[", "#[cfg_attr(miri, ", "/// ```"] {
            assert_eq!(unfinished("wheel.rs", &format!("{before}ignore")).len(), 1, "{before}");
        }
        assert_eq!(unfinished("wheel.rs", "// We ignore, on purpose, what is done.\nlet todo = 1;").len(), 0);
    }

    #[test]
    fn decisions_with_a_gap_or_without_a_link() {
        let file = |path: &str, text: &str| File { path: path.to_string(), text: text.to_string() };
        let source =
            file("crates/core/src/wheel.rs", "//! See 0001-wheel.md, 0002-lanes.md and 0003-late.md.");
        let refused = |names: &[&str]| {
            let mut files: Vec<File> =
                names.iter().map(|name| file(&format!("docs/decisions/{name}"), name)).collect();
            files.push(file(&source.path, &source.text));
            untidy_decisions(&files).len()
        };

        assert_eq!(refused(&["0001-wheel.md", "0003-late.md"]), 1, "a gap");
        assert_eq!(refused(&["0001-wheel.md", "0001-wheel.md"]), 1, "a number used twice");
        assert_eq!(refused(&["0001-nobody-knows.md"]), 1, "no link");
        assert_eq!(refused(&["wheel.md"]), 1, "no number");

        assert_eq!(refused(&["0001-wheel.md", "0002-lanes.md", "0003-late.md", "README.md"]), 0);
    }

    #[test]
    fn paths_of_a_machine() {
        for folder in ["work", "root", "home", "Users"] {
            for text in [format!("cd /{folder}/x"), format!("\"/{folder}/x\""), format!("file:///{folder}/x")]
            {
                assert_eq!(machine_paths("README.md", &text).len(), 1, "{text}");
            }
            for text in [format!("docs/{folder}/x"), format!("../{folder}/x"), format!("https://{folder}/x")]
            {
                assert_eq!(machine_paths("README.md", &text).len(), 0, "{text}");
            }
        }
    }
}
