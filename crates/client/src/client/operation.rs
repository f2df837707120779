//! What those who run a server ask of it: a copy of everything, and what is on hold after a restore.

use bytes::Bytes;
use futures_util::{Stream, stream};
use http::header::ACCEPT;
use http_body_util::BodyExt;
use hyper::body::Incoming;

use super::Client;
use super::error::Error;
use crate::wire::Hold;

/// The copy is made before its first byte comes.
const COPY_MAX: std::time::Duration = std::time::Duration::from_secs(3600);

impl Client {
    /// Everything as it is at one moment: a tar file of a data folder, in pieces. If it breaks off, the last is an error.
    pub async fn backup(&self) -> Result<impl Stream<Item = Result<Bytes, Error>> + Send + 'static, Error> {
        let asking = self.post("/v1/backup".to_owned()).header(ACCEPT, "application/x-tar").wait(COPY_MAX);
        let answer = asking.open().await?;
        Ok(Box::pin(stream::unfold(Some(answer), next_piece)))
    }

    /// Which queues are on hold since the data folder was restored.
    pub async fn hold(&self) -> Result<Hold, Error> {
        self.get_path("/v1/hold".to_owned()).read().await
    }

    /// Resumes them. Answers with those that were.
    pub async fn release_hold(&self) -> Result<Hold, Error> {
        self.post("/v1/hold:release".to_owned()).read().await
    }
}

async fn next_piece(answer: Option<Incoming>) -> Option<(Result<Bytes, Error>, Option<Incoming>)> {
    let mut answer = answer?;
    loop {
        match answer.frame().await? {
            Ok(frame) => {
                if let Ok(piece) = frame.into_data() {
                    return Some((Ok(piece), Some(answer)));
                }
            }
            Err(error) => return Some((Err(Error::Unknown(Box::new(error))), None)),
        }
    }
}
