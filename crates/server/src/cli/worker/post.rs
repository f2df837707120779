//! Posts a task to a URL near by: for programs that speak HTTP and cannot be reached by the server.

use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::{Request, Uri};
use http_body_util::{BodyExt, Full, Limited};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use punctual::clock::Clock;
use punctual_client::wire::Json;
use punctual_client::{Failure, Job};
use punctual_server::call::{Success, Verdict};

use crate::cli::trouble::Trouble;
use crate::cli::words;

const ANSWER_BYTES_MAX: usize = 256 * 1024;
/// So much of an error is kept.
const ERROR_CHARS: usize = 500;

/// Where tasks are posted to.
#[derive(Clone)]
pub struct Target {
    url: Uri,
    client: Client<HttpConnector, Full<Bytes>>,
}

impl Target {
    /// A URL that can be posted to.
    pub fn new(url: &str) -> Result<Target, Trouble> {
        let wrong = || Trouble::usage(format!("--post {url}: write it like http://127.0.0.1:3000/tasks"));
        let uri: Uri = url.parse().map_err(|_| wrong())?;
        if uri.scheme_str() != Some("http") || uri.authority().is_none() {
            return Err(
                wrong().hint("for https, let the server call it: punctual queue set QUEUE --target URL")
            );
        }
        Ok(Target { url: uri, client: Client::builder(TokioExecutor::new()).build_http() })
    }

    /// Posts one task.
    pub async fn post(self, job: Job) -> Result<Option<Json>, Failure> {
        let task = job.task();
        let kind =
            if task.payload_base64.is_some() { "application/octet-stream" } else { "application/json" };
        let mut request = Request::post(self.url)
            .header(CONTENT_TYPE, kind)
            .header("idempotency-key", &task.id)
            .header("punctual-task", &task.id)
            .header("punctual-queue", &task.queue)
            .header("punctual-attempt", task.attempt)
            .header("punctual-scheduled-for", task.at.to_string());
        for (name, value) in [("traceparent", &task.traceparent), ("tracestate", &task.tracestate)] {
            request = value.iter().fold(request, |request, value| request.header(name, value));
        }
        let request = request.body(Full::from(job.payload_bytes().to_vec()))?;
        let response = self.client.request(request).await?;
        let (status, headers) = (response.status(), response.headers().clone());
        let body = Limited::new(response.into_body(), ANSWER_BYTES_MAX).collect().await;
        let body = body.map_err(|error| Failure::new(format!("the answer was cut off: {error}")))?.to_bytes();
        let text = String::from_utf8_lossy(&body);
        // As a server judges the answers of whom it calls.
        let now = punctual::system_time(Clock::system().now().wall);
        let verdict = Success::default().judge(status, &headers, false, now);
        if verdict == Verdict::Done {
            let text = text.trim();
            return Ok((!text.is_empty())
                .then(|| Json::from_text(text).or_else(|_| Json::of(text)))
                .transpose()?);
        }
        let error = words::shortened(&format!("{status}: {text}"), ERROR_CHARS);
        eprintln!("{}: {error}", task.id);
        let failure = Failure::new(error);
        Err(match verdict {
            Verdict::GiveUp => failure.give_up(),
            Verdict::Retry(Some(wait)) => failure.not_before(wait),
            _ => failure,
        })
    }
}
