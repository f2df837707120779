//! Data folders: who may open them, which are refused, and how they are copied.

use std::fs;
use std::path::Path;
use std::process::Command;

use bytes::Bytes;
use punctual_core::Timestamp;
use punctual_store::embedded::journal::Options;
use punctual_store::embedded::{EmbeddedStore, FolderError, FolderOptions, FolderTrouble, verify};
use punctual_store::{Store, StoreError, Swap};

use super::world::small;

fn options() -> FolderOptions {
    let (journal, bounds) = small();
    let journal = Options { segment_bytes: 256 << 10, ..journal };
    FolderOptions { partitions: 4, journal, bounds, ..FolderOptions::default() }
}

async fn open(path: &Path) -> Result<EmbeddedStore, FolderError> {
    EmbeddedStore::open_with(path, options()).await
}

async fn refusal(path: &Path) -> FolderError {
    open(path).await.err().expect("it is refused")
}

async fn set(store: &EmbeddedStore, key: &str, value: &str) {
    let value = Some(Bytes::copy_from_slice(value.as_bytes()));
    let present = store.get(Timestamp::MIN, key).await.expect("read").map(|entry| entry.version);
    let swap = store.compare_and_set(Timestamp::MIN, key, present, value, None).await.expect("written");
    assert!(matches!(swap, Swap::Done(_)));
}

async fn get(store: &EmbeddedStore, key: &str) -> Option<Bytes> {
    store.get(Timestamp::MIN, key).await.expect("read").map(|entry| entry.value)
}

/// So many entries, and enough of them that layers went down.
async fn fill(store: &EmbeddedStore, entries: usize) {
    for n in 0..entries {
        set(store, &format!("entry {n:04}"), &"x".repeat(200)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_folder_is_made_and_opened_again() {
    let place = tempfile::tempdir().expect("a folder");
    let path = place.path().join("made/with/those/above");
    let store = open(&path).await.expect("it is made");
    set(&store, "a", "1").await;
    assert_eq!(store.meta().await.expect("read").partitions, 4);
    drop(store);
    // The number of partitions is the folder's, whatever is asked for.
    let other = FolderOptions { partitions: 8, ..options() };
    let store = EmbeddedStore::open_with(&path, other).await.expect("it opens");
    assert_eq!(store.meta().await.expect("read").partitions, 4);
    assert_eq!(get(&store, "a").await.as_deref(), Some(&b"1"[..]));
}

#[tokio::test(flavor = "multi_thread")]
async fn one_process_at_a_time_and_its_number_is_told() {
    let place = tempfile::tempdir().expect("a folder");
    let store = open(place.path()).await.expect("it opens");
    let error = refusal(place.path()).await;
    assert!(matches!(error.trouble, FolderTrouble::InUse { pid: Some(pid) } if pid == std::process::id()));
    assert!(error.to_string().contains("already open in this process"), "{error}");
    drop(store);

    // Another process: `flock` of the system holds the same lock.
    let lock = place.path().join("lock");
    let script = "echo $$ > \"$0\"; echo locked; read -r _";
    let mut holder = Command::new("flock")
        .arg(&lock)
        .args(["sh", "-c", script])
        .arg(&lock)
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .expect("flock runs");
    let mut line = String::new();
    let told = holder.stdout.take().expect("piped");
    std::io::BufRead::read_line(&mut std::io::BufReader::new(told), &mut line).expect("it says so");
    let error = refusal(place.path()).await;
    let FolderTrouble::InUse { pid: Some(pid) } = error.trouble else { panic!("{error:?}") };
    assert_eq!(fs::read_to_string(&lock).expect("read").trim(), pid.to_string());
    assert!(error.to_string().contains(&format!("in use by process {pid}")), "{error}");
    drop(holder.stdin.take());
    holder.wait().expect("it ends");
    open(place.path()).await.expect("it is free again");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_foreign_folder_is_refused_and_left_alone() {
    let place = tempfile::tempdir().expect("a folder");
    fs::write(place.path().join("holiday.jpg"), "beach").expect("written");
    let error = refusal(place.path()).await;
    assert!(error.to_string().contains("it holds `holiday.jpg`"), "{error}");
    let names: Vec<_> =
        fs::read_dir(place.path()).expect("read").flatten().map(|it| it.file_name()).collect();
    assert_eq!(names, ["holiday.jpg"]);

    let file = place.path().join("holiday.jpg");
    assert!(matches!(refusal(&file).await.trouble, FolderTrouble::Disk(_)), "a file is no folder");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_newer_and_a_spoiled_folder_are_told_apart() {
    let place = tempfile::tempdir().expect("a folder");
    drop(open(place.path()).await.expect("it is made"));
    let about = place.path().join("punctual.txt");
    let text = fs::read_to_string(&about).expect("read");

    fs::write(&about, text.replace("format = 1", "format = 2")).expect("written");
    let error = refusal(place.path()).await;
    assert!(matches!(error.trouble, FolderTrouble::Newer { format: 2 }), "{error}");
    assert!(error.to_string().contains("use the newer version"), "{error}");

    for spoiled in
        ["", "Something", &text[..text.len() / 2], &text.replace("= 4", "= 0"), &text.replace("1", "0")]
    {
        fs::write(&about, spoiled).expect("written");
        let error = refusal(place.path()).await;
        assert!(matches!(error.trouble, FolderTrouble::Unreadable(_)), "{spoiled:?}: {error}");
    }
    fs::write(&about, [0xff, 0xfe]).expect("written");
    assert!(matches!(refusal(place.path()).await.trouble, FolderTrouble::Unreadable("it is no text")));
    fs::write(&about, text).expect("mended");
    open(place.path()).await.expect("it opens");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_journal_and_tables_of_two_folders_do_not_open() {
    let place = tempfile::tempdir().expect("a folder");
    let [one, other] = ["one", "other"].map(|name| place.path().join(name));
    for path in [&one, &other] {
        let store = open(path).await.expect("it is made");
        fill(&store, 100).await;
        assert!(store.checkpoints() > 0, "some of it is in the tables");
    }
    let corrupt = |error: FolderError| match error.trouble {
        FolderTrouble::Store(StoreError::Corrupt(what)) => what.to_string(),
        trouble => panic!("{trouble:?}"),
    };
    let away = place.path().join("away");

    fs::rename(one.join("tables"), &away).expect("moved");
    assert!(corrupt(refusal(&one).await).contains("its tables are missing"));
    fs::remove_dir_all(one.join("tables")).expect("removed");
    fs::rename(other.join("tables"), one.join("tables")).expect("moved");
    corrupt(refusal(&one).await);
    fs::remove_dir_all(one.join("tables")).expect("removed");
    fs::rename(&away, one.join("tables")).expect("moved back");

    fs::rename(one.join("journal"), &away).expect("moved");
    assert!(corrupt(refusal(&one).await).contains("the journal is missing"));
    fs::remove_dir_all(one.join("journal")).expect("removed");
    fs::rename(&away, one.join("journal")).expect("moved back");
    assert!(get(&open(&one).await.expect("it opens"), "entry 0099").await.is_some());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_folder_whose_making_was_cut_off_is_made_again() {
    let place = tempfile::tempdir().expect("a folder");
    fs::write(place.path().join("punctual.txt.new"), "A data fol").expect("written");
    fs::write(place.path().join("lock"), "").expect("written");
    let store = open(place.path()).await.expect("it is made");
    set(&store, "a", "1").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn tables_whose_making_was_cut_off_are_made_again() {
    // A kill while the tables were made left a folder that could never be opened again.
    let place = tempfile::tempdir().expect("a folder");
    drop(open(place.path()).await.expect("it is made"));
    for name in ["tables", "journal"] {
        fs::remove_dir_all(place.path().join(name)).expect("removed");
    }
    fs::create_dir_all(place.path().join("tables.new/keyspaces")).expect("made");
    fs::write(place.path().join("tables.new/0.jnl"), "").expect("written");
    let store = open(place.path()).await.expect("it opens");
    set(&store, "a", "1").await;
    assert!(!place.path().join("tables.new").exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_backup_is_of_one_moment_while_others_write() {
    let place = tempfile::tempdir().expect("a folder");
    let [path, copy] = ["data", "copy"].map(|name| place.path().join(name));
    let store = open(&path).await.expect("it opens");
    fill(&store, 200).await;
    // Two entries that are always written one after the other, over and over.
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let writer = tokio::spawn({
        let store = store.clone();
        let mut stopped = stopped;
        async move {
            let mut n = 0_u32;
            while stopped.try_recv().is_err() {
                set(&store, "first", &format!("{n:08}")).await;
                set(&store, "second", &format!("{n:08}")).await;
                n += 1;
            }
            n
        }
    });
    for round in 0..5 {
        let copy = copy.join(round.to_string());
        fs::create_dir_all(&copy).expect("made");
        let copied = store.backup(&copy, |_| {}).await.expect("copied");
        assert!(copied.rows >= 200, "{copied:?}");
        let verified = verify(&copy, |_| {}).await.expect("verified");
        assert_eq!(verified.rows.described, Vec::<String>::new());
        let copied = open(&copy).await.expect("the copy opens");
        let number = |value: Option<Bytes>| -> u32 {
            value.map_or(0, |value| String::from_utf8_lossy(&value).parse().expect("a number"))
        };
        let (first, second) = (number(get(&copied, "first").await), number(get(&copied, "second").await));
        assert!(first == second || first == second + 1, "{first} and {second} are not of one moment");
        assert!(get(&copied, "entry 0199").await.is_some());
        set(&copied, "more", "yes").await;
        drop(copied);
        assert!(get(&open(&copy).await.expect("it opens again"), "more").await.is_some());
    }
    stop.send(()).expect("the writer is there");
    assert!(writer.await.expect("it ends") > 0);

    let error = store.backup(&path, |_| {}).await.expect_err("it is there already");
    assert!(matches!(error.trouble, FolderTrouble::NotEmpty), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_backup_that_was_cut_off_is_no_data_folder() {
    let place = tempfile::tempdir().expect("a folder");
    let [path, copy] = ["data", "copy"].map(|name| place.path().join(name));
    let store = open(&path).await.expect("it opens");
    fill(&store, 20).await;
    store.backup(&copy, |_| {}).await.expect("copied");
    fs::remove_file(copy.join("punctual.txt")).expect("removed");
    let error = refusal(&copy).await;
    assert!(matches!(error.trouble, FolderTrouble::Unfinished), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_backup_is_restored_and_a_folder_in_use_is_not() {
    let place = tempfile::tempdir().expect("a folder");
    let [path, copy, back] = ["data", "copy", "back"].map(|name| place.path().join(name));
    let store = open(&path).await.expect("it opens");
    fill(&store, 100).await;
    store.backup(&copy, |_| {}).await.expect("copied");
    let error = EmbeddedStore::restore(&path, &back).await.expect_err("it is in use");
    assert!(matches!(error.trouble, FolderTrouble::InUse { .. }), "{error}");
    drop(store);
    let error =
        EmbeddedStore::restore(place.path().join("nothing"), &back).await.expect_err("nothing is there");
    assert!(matches!(error.trouble, FolderTrouble::Missing), "{error}");

    // From a backup, and from a folder with a journal of its own.
    for (from, to) in [(&copy, &back), (&path, &place.path().join("again"))] {
        let copied = EmbeddedStore::restore(from, to).await.expect("restored");
        assert!(copied.bytes > 0);
        let store = open(to).await.expect("it opens");
        for n in 0..100 {
            assert!(get(&store, &format!("entry {n:04}")).await.is_some(), "entry {n}");
        }
    }
    let error = EmbeddedStore::restore(&copy, &back).await.expect_err("something is there");
    assert!(matches!(error.trouble, FolderTrouble::NotEmpty), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn verify_reads_everything_and_refuses_damage() {
    let place = tempfile::tempdir().expect("a folder");
    let missing = verify(place.path(), |_| {}).await.expect_err("nothing is there");
    assert!(matches!(missing.trouble, FolderTrouble::Missing), "{missing}");
    let store = open(place.path()).await.expect("it opens");
    fill(&store, 100).await;
    let in_use = verify(place.path(), |_| {}).await.expect_err("it is in use");
    assert!(matches!(in_use.trouble, FolderTrouble::InUse { .. }), "{in_use}");
    drop(store);
    let verified = verify(place.path(), |_| {}).await.expect("verified");
    assert_eq!(verified.rows.described, Vec::<String>::new());
    assert!(verified.rows.rows >= 100 && verified.journal.segments > 0, "{verified:?}");
}

/// Fjall believes the list of its tables, whatever it says: a spoiled one lost rows, or ended the process. Without one it
/// removed the tables, and went on.
#[tokio::test(flavor = "multi_thread")]
async fn a_spoiled_list_of_tables_is_refused() {
    let place = tempfile::tempdir().expect("a folder");
    let store = open(place.path()).await.expect("it is made");
    fill(&store, 300).await;
    assert!(store.checkpoints() > 0);
    drop(store);
    for keyspace in ["0", "1"] {
        let keyspace = place.path().join("tables/keyspaces").join(keyspace);
        let current = fs::read(keyspace.join("current")).expect("read");
        let list =
            keyspace.join(format!("v{}", u64::from_le_bytes(*current.first_chunk().expect("a number"))));
        for file in [keyspace.join("current"), list] {
            let whole = fs::read(&file).expect("read");
            for at in 0..whole.len() {
                let mut spoiled = whole.clone();
                spoiled[at] ^= 1 << (at % 8);
                fs::write(&file, &spoiled).expect("written");
                refusal(place.path()).await;
            }
            fs::remove_file(&file).expect("removed");
            refusal(place.path()).await;
            fs::write(&file, &whole).expect("written");
        }
    }
    let store = open(place.path()).await.expect("it opens as it was");
    assert!(get(&store, "entry 0299").await.is_some());
}

#[tokio::test(flavor = "multi_thread")]
async fn what_fits_into_no_segment_is_refused_and_nothing_else() {
    let place = tempfile::tempdir().expect("a folder");
    let store = open(place.path()).await.expect("it is made");
    let huge = Some(Bytes::from(vec![7; 1 << 20]));
    let refused = store.compare_and_set(Timestamp::MIN, "huge", None, huge, None).await;
    assert!(matches!(refused, Err(StoreError::Unavailable(_))), "{refused:?}");
    set(&store, "small", "1").await;
    assert_eq!(get(&store, "huge").await, None);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_folder_is_not_copied_into_itself() {
    let place = tempfile::tempdir().expect("a folder");
    let path = place.path().join("data");
    let store = open(&path).await.expect("it is made");
    set(&store, "a", "1").await;
    let inside = [path.join("copy"), path.join("journal/deep/copy"), place.path().join("data/tables/x")];
    for target in &inside {
        let error = store.backup(target, |_| {}).await.expect_err("it is inside");
        assert!(matches!(error.trouble, FolderTrouble::Inside), "{error}");
    }
    drop(store);
    for target in &inside {
        let error = EmbeddedStore::restore(&path, target).await.expect_err("it is inside");
        assert!(matches!(error.trouble, FolderTrouble::Inside), "{error}");
        assert!(!target.exists(), "nothing was made");
    }
    EmbeddedStore::restore(&path, place.path().join("data-copy")).await.expect("it lies beside it");
}

/// Whoever read a spoiled table was told to try again later.
#[tokio::test(flavor = "multi_thread")]
async fn a_spoiled_table_is_damage() {
    let place = tempfile::tempdir().expect("a folder");
    let store = open(place.path()).await.expect("it is made");
    fill(&store, 300).await;
    drop(store);
    for table in fs::read_dir(place.path().join("tables/keyspaces/1/tables")).expect("read").flatten() {
        let mut spoiled = fs::read(table.path()).expect("read");
        spoiled[60..160].fill(7);
        fs::write(table.path(), spoiled).expect("written");
    }
    let error = match open(place.path()).await {
        Ok(store) => store.entries(Timestamp::MIN, "entry", None, 1_000).await.expect_err("it is spoiled"),
        Err(FolderError { trouble: FolderTrouble::Store(error), .. }) => error,
        Err(error) => panic!("{error}"),
    };
    assert!(matches!(error, StoreError::Corrupt(_)), "{error:?}");
}
