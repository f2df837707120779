//! `POST /v1/backup`: everything as it is at one moment, as a tar file, while the server goes on.
//!
//! The store is copied beside the data folder first and sent from there, so that a slow reader holds up nothing. What says
//! that it is a data folder comes last: whatever is cut off before is not taken for one.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use axum::body::Body;
use axum::extract::State;
use axum::response::Response;
use bytes::Bytes;
use futures_util::stream;
use http::{HeaderValue, header};
use punctual::{FolderError, FolderTrouble};
use tokio::sync::mpsc;

use super::ask::{self, Asker};
use super::failure::Failure;
use crate::app::App;

/// What is sent at once.
const PIECE: usize = 64 * 1024;
/// So many pieces wait for a slow reader.
const PIECES_MAX: usize = 16;
/// What makes a folder a data folder.
const ABOUT: &str = "punctual.txt";
/// Held by the process that uses a folder.
const LOCK: &str = "lock";

/// `POST /v1/backup`
pub async fn backup(
    State(app): State<App>,
    _asker: Asker,
    ask::Nothing: ask::Nothing,
) -> Result<Response, Failure> {
    let alone =
        app.backing_up().ok_or_else(|| Failure::new("overloaded", "a backup is under way already"))?;
    let store = app.scheduler().store().clone();
    let copy = Copy::beside(store.path()).map_err(|error| not_copied(&error.to_string()))?;
    store.backup(&copy.0, |_| {}).await.map_err(|error| not_copied(&explained(&error)))?;
    let (pieces, sent) = mpsc::channel(PIECES_MAX);
    tokio::task::spawn_blocking(move || {
        let mut out = Pieces { to: pieces, piece: Vec::with_capacity(PIECE) };
        if let Err(error) = write_tar(&copy.0, &mut out) {
            // The reader sees that it broke off.
            out.to.blocking_send(Err(error)).ok();
        }
        drop((copy, alone));
    });
    let pieces = stream::unfold(sent, async |mut sent| sent.recv().await.map(|piece| (piece, sent)));
    let mut response = Response::new(Body::from_stream(pieces));
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/x-tar"));
    let name = HeaderValue::from_static("attachment; filename=\"punctual-backup.tar\"");
    headers.insert(header::CONTENT_DISPOSITION, name);
    Ok(response)
}

fn not_copied(why: &str) -> Failure {
    Failure::new("backup_failed", why.to_owned())
}

fn explained(error: &FolderError) -> String {
    match &error.trouble {
        FolderTrouble::Disk(cause) => format!("{error}: {cause}"),
        FolderTrouble::Store(cause) => format!("{error}: {cause}"),
        _ => error.to_string(),
    }
}

/// A copy on this machine, until it is dropped.
struct Copy(PathBuf);

impl Copy {
    /// Beside the data folder, where there should be room for another. One that a process left behind is removed.
    fn beside(data: &Path) -> io::Result<Copy> {
        let data = fs::canonicalize(data)?;
        let mut name = data.file_name().unwrap_or_default().to_owned();
        name.push(".backup-under-way");
        let copy = data.with_file_name(name);
        match fs::remove_dir_all(&copy) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(Copy(copy)),
        }
    }
}

impl Drop for Copy {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.0).ok();
    }
}

fn write_tar(folder: &Path, out: &mut Pieces) -> io::Result<()> {
    let mut tar = tar::Builder::new(&mut *out);
    let mut names: Vec<_> =
        fs::read_dir(folder)?.map(|entry| Ok(entry?.file_name())).collect::<io::Result<_>>()?;
    names.retain(|name| name != ABOUT && name != LOCK);
    names.sort();
    for name in names {
        let path = folder.join(&name);
        if path.is_dir() {
            tar.append_dir_all(&name, &path)?;
        } else {
            tar.append_path_with_name(&path, &name)?;
        }
    }
    tar.append_path_with_name(folder.join(ABOUT), ABOUT)?;
    tar.finish()?;
    drop(tar);
    out.flush()
}

/// Writes into a body.
struct Pieces {
    to: mpsc::Sender<io::Result<Bytes>>,
    piece: Vec<u8>,
}

impl Write for Pieces {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.piece.extend_from_slice(bytes);
        if self.piece.len() >= PIECE {
            self.flush()?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        if self.piece.is_empty() {
            return Ok(());
        }
        let piece = std::mem::replace(&mut self.piece, Vec::with_capacity(PIECE));
        self.to.blocking_send(Ok(piece.into())).map_err(|_| io::ErrorKind::BrokenPipe.into())
    }
}
