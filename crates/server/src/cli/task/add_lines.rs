//! Many tasks, one in each line: added while they come, and told of in order.

use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::pin::pin;

use bytes::Bytes;
use futures_util::{Stream, StreamExt, stream};
use punctual_client::Creating;
use tokio::sync::mpsc;

use crate::cli::Outcome;
use crate::cli::ask::{Remote, print, print_json};
use crate::cli::trouble::Trouble;

/// So much is read at once, and so many pieces wait to be sent.
const PIECE_BYTES: usize = 64 * 1024;
const PIECES_KEPT: usize = 4;

/// Adds the tasks of a file. Prints the id of each that was added, and says on stderr which were refused, and why.
pub async fn add_lines(remote: &Remote, creating: &Creating, file: &Path) -> Outcome {
    let creating = if remote.json { creating.clone() } else { creating.clone().minimal() };
    let results = remote.heard(creating.lines(pieces(file)?).await)?;
    let mut results = pin!(results);
    let (mut count, mut refused) = (0u64, 0u64);
    while let Some(result) = results.next().await {
        let result = remote.heard(result)?;
        count += 1;
        refused += u64::from(result.problem.is_some());
        match (remote.json, result.id()) {
            (true, _) => print_json(&result)?,
            (false, Ok(id)) => print(id)?,
            (false, Err(problem)) => eprintln!("task {count}: {problem}"),
        }
    }
    match refused {
        0 => Ok(()),
        _ => Err(Trouble::failed(format!("{refused} of {count} tasks were refused, and the others added"))),
    }
}

/// What is in a file or comes from stdin, piece by piece. Reading waits while the server does.
fn pieces(file: &Path) -> Result<impl Stream<Item = io::Result<Bytes>> + Send + 'static, Trouble> {
    let mut input: Box<dyn Read + Send> = match file == Path::new("-") {
        true => Box::new(io::stdin()),
        false => Box::new(std::fs::File::open(file).map_err(|error| not_read(file, &error))?),
    };
    let (pieces, read) = mpsc::channel(PIECES_KEPT);
    let file = PathBuf::from(file);
    std::thread::spawn(move || {
        loop {
            let mut piece = vec![0; PIECE_BYTES];
            let piece = match input.read(&mut piece) {
                Ok(0) => return,
                Ok(length) => Ok(Bytes::from(piece).slice(..length)),
                Err(error) => Err(io::Error::other(format!("cannot read {}: {error}", file.display()))),
            };
            let is_broken = piece.is_err();
            if pieces.blocking_send(piece).is_err() || is_broken {
                return;
            }
        }
    });
    Ok(stream::unfold(read, async |mut read| Some((read.recv().await?, read))))
}

fn not_read(file: &Path, error: &io::Error) -> Trouble {
    Trouble::usage(format!("cannot read {}: {error}", file.display()))
}
