//! A backup that a server sends, put into a folder as it comes.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use bytes::{Buf, Bytes};
use futures_util::{Stream, StreamExt};
use punctual_client::Error;

use super::trouble::file_in;

/// So many pieces wait for a slow disk.
const PIECES_MAX: usize = 16;

/// Why a backup was not received.
pub enum NotReceived {
    /// The server did not send it to its end.
    Sent(Error),
    /// It could not be written.
    Written(io::Error),
}

/// Writes a tar file of a data folder into `to`, which must be empty or not there. Answers with its bytes.
pub async fn receive(
    pieces: impl Stream<Item = Result<Bytes, Error>>,
    to: &Path,
    mut progress: impl FnMut(u64),
) -> Result<u64, NotReceived> {
    let (sender, receiver) = sync_channel(PIECES_MAX);
    let folder = to.to_owned();
    let writing = tokio::task::spawn_blocking(move || unpack(receiver, &folder));
    let mut pieces = std::pin::pin!(pieces);
    let mut bytes = 0;
    while let Some(piece) = pieces.next().await {
        let piece = piece.map_err(NotReceived::Sent)?;
        bytes += piece.len() as u64;
        progress(bytes);
        if !pass_on(&sender, piece).await {
            break;
        }
    }
    drop(sender);
    let written = writing.await.map_err(io::Error::other).and_then(|written| written);
    written.map_err(NotReceived::Written)?;
    Ok(bytes)
}

/// Whether somebody still reads.
async fn pass_on(to: &SyncSender<Bytes>, piece: Bytes) -> bool {
    let to = to.clone();
    tokio::task::spawn_blocking(move || to.send(piece).is_ok()).await.unwrap_or(false)
}

/// Refuses a file, and a folder in which something is already, before a server is asked for what goes there.
pub fn refuse_full(to: &Path) -> io::Result<()> {
    let (what, is) = match file_in(to) {
        Some(file) => (file, "a file"),
        None if fs::read_dir(to).is_ok_and(|mut entries| entries.next().is_some()) => (to, "not empty"),
        None => return Ok(()),
    };
    let text = format!("{} is {is}: name a folder that is empty or not there yet", what.display());
    Err(io::Error::new(io::ErrorKind::AlreadyExists, text))
}

fn unpack(pieces: Receiver<Bytes>, to: &Path) -> io::Result<()> {
    refuse_full(to)?;
    fs::create_dir_all(to)?;
    let mut archive = tar::Archive::new(Pieces { from: pieces, piece: Bytes::new() });
    archive.set_preserve_permissions(false);
    archive.set_preserve_mtime(false);
    // Whatever a name says, nothing is written outside of the folder.
    archive.unpack(to)?;
    sync(&to.to_owned())
}

/// What is to be relied on later is on the disk now.
fn sync(path: &PathBuf) -> io::Result<()> {
    if path.is_dir() {
        for entry in fs::read_dir(path)? {
            sync(&entry?.path())?;
        }
    }
    File::open(path)?.sync_all()
}

/// Pieces, read as one.
struct Pieces {
    from: Receiver<Bytes>,
    piece: Bytes,
}

impl Read for Pieces {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        while self.piece.is_empty() {
            match self.from.recv() {
                Ok(piece) => self.piece = piece,
                Err(_) => return Ok(0),
            }
        }
        let bytes = into.len().min(self.piece.len());
        self.piece.copy_to_slice(&mut into[..bytes]);
        Ok(bytes)
    }
}
