//! The audit: who changed what, when and from where, one line of JSON each, appended to a file of its own.
//!
//! Never a secret, never a payload. Lines are handed to the system in the order in which requests were answered, a few
//! moments after the answer: a crash of the machine can lose the last of them, a slow disk makes requests wait.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use punctual::clock::Clock;
use punctual_client::wire::Moment;
use serde::Serialize;
use tokio::sync::{mpsc, oneshot};

use crate::api::moment_of;
use crate::keys::Bucket;

/// So many lines can wait for the disk; then requests wait.
const WAITING_MAX: usize = 4_096;
/// So many bytes are written at once.
const WRITTEN_MAX: usize = 64 * 1024;
/// Refusals cost whoever is refused nothing, so that they must not fill a disk: so many are written in a second …
const REFUSED_PER_SECOND: u32 = 10;
/// … and so many at once; the rest are counted.
const REFUSED_BURST: u32 = 100;
/// A path that is longer says no more.
const PATH_MAX: usize = 500;

/// Something that was done, or refused.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Deed {
    /// The key's id. What was not known, but looked like a key, is named too.
    pub key: Option<String>,
    /// Whose tasks it was about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// The address that the request came from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// The method.
    pub method: String,
    /// The path, without its query.
    pub path: String,
    /// How it was answered.
    pub status: u16,
    /// The code of the problem, if there was one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    /// Where what was made is found.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub made: Option<String>,
}

#[derive(Serialize)]
struct Line<'a> {
    at: Moment,
    #[serde(flatten)]
    deed: &'a Deed,
    /// So many refusals before this one were only counted.
    #[serde(skip_serializing_if = "is_none")]
    not_written: u64,
}

fn is_none(count: &u64) -> bool {
    *count == 0
}

/// Where it is written what was done.
pub struct Audit {
    writer: mpsc::Sender<Order>,
    clock: Clock,
    refusals: Bucket,
    not_written: AtomicU64,
}

enum Order {
    Write(Vec<u8>),
    /// The file was moved away: begin another.
    Reopen,
    /// Tell when everything before is written.
    Tell(oneshot::Sender<()>),
}

impl Audit {
    /// Writes to the end of that file, which is made by the first line if it is not there.
    pub fn new(path: PathBuf) -> io::Result<Audit> {
        let (writer, orders) = mpsc::channel(WAITING_MAX);
        let writing = move || Writing { path, open: None, lines: Vec::new() }.until_the_end(orders);
        std::thread::Builder::new().name("audit".to_owned()).spawn(writing)?;
        let (refusals, not_written) = (Bucket::default(), AtomicU64::new(0));
        Ok(Audit { writer, clock: Clock::system(), refusals, not_written })
    }

    /// Something was done.
    pub async fn did(&self, deed: Deed) {
        self.writer.send(Order::Write(self.line(&deed, 0))).await.ok();
    }

    /// Somebody was not let in. Nobody waits for this to be written.
    pub fn refused(&self, deed: impl FnOnce() -> Deed) {
        let is_written = self.refusals.take(self.clock.now().boot, REFUSED_PER_SECOND, REFUSED_BURST) && {
            let before = self.not_written.swap(0, Ordering::Relaxed);
            self.writer.try_send(Order::Write(self.line(&deed(), before))).is_ok()
        };
        if !is_written {
            self.not_written.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Begins a new file of the same name, if the one of today was moved away.
    pub async fn reopen(&self) {
        self.writer.send(Order::Reopen).await.ok();
    }

    /// Returns when everything is written.
    pub async fn written(&self) {
        let (tell, told) = oneshot::channel();
        if self.writer.send(Order::Tell(tell)).await.is_ok() {
            told.await.ok();
        }
    }

    fn line(&self, deed: &Deed, not_written: u64) -> Vec<u8> {
        let mut deed = deed.clone();
        if let Some((cut, _)) = deed.path.char_indices().nth(PATH_MAX) {
            deed.path.truncate(cut);
        }
        let line = Line { at: moment_of(self.clock.now().wall), deed: &deed, not_written };
        let mut bytes = serde_json::to_vec(&line).unwrap_or_default();
        bytes.push(b'\n');
        bytes
    }
}

/// Whether lines can be written there.
pub fn can_write(path: &Path) -> io::Result<()> {
    file(path).map(drop)
}

/// What else has a name would never be written, or hold up whoever opens it: a pipe waits for a reader.
fn refuse_what_is_no_file(path: &Path) -> io::Result<()> {
    match std::fs::metadata(path) {
        Ok(there) if !there.is_file() && !there.file_type().is_char_device() => {
            Err(io::Error::other("it is no file"))
        }
        _ => Ok(()),
    }
}

/// The file as it is, if there is one: nothing is made, and whoever opens it can write.
pub fn open_existing(path: &Path) -> io::Result<File> {
    refuse_what_is_no_file(path)?;
    OpenOptions::new().append(true).open(path)
}

fn file(path: &Path) -> io::Result<File> {
    refuse_what_is_no_file(path)?;
    OpenOptions::new().append(true).create(true).mode(0o600).open(path)
}

/// Lines on their way to the file.
struct Writing {
    path: PathBuf,
    open: Option<File>,
    lines: Vec<u8>,
}

impl Writing {
    /// Writes until nobody has orders any more. Many lines that wait are written at once.
    fn until_the_end(mut self, mut orders: mpsc::Receiver<Order>) {
        while let Some(order) = orders.blocking_recv() {
            let mut next = Some(order);
            while let Some(order) = next.take() {
                match order {
                    Order::Write(line) => self.lines.extend(line),
                    Order::Reopen => {
                        self.write();
                        self.open = None;
                    }
                    Order::Tell(tell) => {
                        self.write();
                        tell.send(()).ok();
                    }
                }
                next = if self.lines.len() < WRITTEN_MAX { orders.try_recv().ok() } else { None };
            }
            self.write();
        }
    }

    fn write(&mut self) {
        if self.lines.is_empty() {
            return;
        }
        let open = match self.open.take() {
            Some(open) => Ok(open),
            None => file(&self.path),
        };
        // What tasks end with must be recorded even when the audit cannot be: it is said, and the server goes on.
        match open.and_then(|mut open| open.write_all(&self.lines).map(|()| open)) {
            Ok(open) => self.open = Some(open),
            Err(error) => {
                eprintln!("punctual: the audit {} could not be written: {error}", self.path.display());
            }
        }
        self.lines.clear();
    }
}
