//! Makes the call of one attempt, and says how it ended.

use std::error::Error;
use std::fmt::Display;
use std::future::Future;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{Request, StatusCode};
use http_body_util::Full;
use hyper_util::client::legacy::{self, Client};
use hyper_util::rt::{TokioExecutor, TokioTimer};
use punctual::clock::Clock;
use punctual::system_time;
use punctual_core::{Attempt, Outcome};
use rustls::pki_types::CertificateDer;
use rustls::{ClientConfig, RootCertStore};
use tokio::time::timeout;
use tokio_rustls::TlsConnector;

use super::answer::Answer;
use super::check::Place;
use super::connector::{ConnectError, Connector, Parts, Resolve, SystemResolver, io_text};
use super::request::build;
use super::rules::{QueueRules, Verdict};
use super::{Call, Guard, Proxy};

/// How many headers of an answer hyper reads, if it is told nothing.
const HYPERS_HEADERS_MAX: usize = 100;

/// How calls are made. [`CallerOptions::new`] has the usual settings.
pub struct CallerOptions {
    /// Tells the time for signatures.
    pub clock: Clock,
    /// Which addresses may be called.
    pub guard: Guard,
    /// The way to those that are not of our own networks; straight if nothing is said.
    pub proxy: Option<Proxy>,
    /// How names are resolved.
    pub resolver: Arc<dyn Resolve>,
    /// How long that may take.
    pub resolve_timeout: Duration,
    /// How long connecting may take, and again agreeing on TLS.
    pub connect_timeout: Duration,
    /// How long a connection is kept when nobody uses it.
    pub idle_timeout: Duration,
    /// How many of them are kept for one host.
    pub idle_max: usize,
    /// How much of a body is read.
    pub body_max: usize,
    /// How large a result may be: what a payload may be.
    pub result_max: usize,
    /// How many bytes, and how many, the headers of an answer may have.
    pub answer_headers_max: (usize, usize),
    /// Whom to trust: the authorities that this machine trusts.
    pub native_roots: bool,
    /// Whom to trust besides.
    pub extra_roots: Vec<CertificateDer<'static>>,
}

impl CallerOptions {
    /// The usual settings.
    pub fn new(clock: Clock, guard: Guard) -> CallerOptions {
        CallerOptions {
            clock,
            guard,
            proxy: None,
            resolver: Arc::new(SystemResolver::default()),
            resolve_timeout: Duration::from_secs(3),
            connect_timeout: Duration::from_secs(5),
            // Shorter than most servers keep theirs: who closes first must be us, or a request may meet a closing door.
            idle_timeout: Duration::from_secs(4),
            idle_max: 32,
            body_max: 64 * 1024,
            result_max: 256 * 1024,
            answer_headers_max: (64 * 1024, HYPERS_HEADERS_MAX),
            native_roots: true,
            extra_roots: Vec::new(),
        }
    }
}

/// Makes calls. Clones share their connections.
#[derive(Clone)]
pub struct Caller(Arc<Inner>);

struct Inner {
    client: Client<Connector, Full<Bytes>>,
    clock: Clock,
    body_max: usize,
    result_max: usize,
    roots: usize,
}

impl Caller {
    /// A caller with these settings.
    pub fn new(options: CallerOptions) -> Caller {
        let roots = roots(&options);
        let roots_known = roots.len();
        let (header_bytes_max, header_count_max) = options.answer_headers_max;
        let connector = Connector::new(Parts {
            guard: options.guard,
            proxy: options.proxy,
            resolver: options.resolver,
            tls: TlsConnector::from(Arc::new(tls(roots))),
            resolve_timeout: options.resolve_timeout,
            connect_timeout: options.connect_timeout,
        });
        let mut client = Client::builder(TokioExecutor::new());
        client
            .pool_timer(TokioTimer::new())
            .pool_idle_timeout(options.idle_timeout)
            .pool_max_idle_per_host(options.idle_max)
            .http1_max_buf_size(header_bytes_max);
        // Told its own number, hyper would clear room for so many with every answer.
        if header_count_max != HYPERS_HEADERS_MAX {
            client.http1_max_headers(header_count_max);
        }
        let client = client.build(connector);
        Caller(Arc::new(Inner {
            client,
            clock: options.clock,
            body_max: options.body_max,
            result_max: options.result_max,
            roots: roots_known,
        }))
    }

    /// How many certificate authorities are trusted. With none, no call over TLS can succeed.
    pub fn trusted_roots(&self) -> usize {
        self.0.roots
    }

    /// Makes the call of this attempt.
    pub fn run(
        &self,
        attempt: Attempt,
        call: Call,
        rules: Arc<QueueRules>,
    ) -> impl Future<Output = Outcome> + Send + use<> {
        let inner = self.0.clone();
        async move { inner.run(&attempt, &call, &rules).await }
    }
}

impl Inner {
    async fn run(&self, attempt: &Attempt, call: &Call, rules: &QueueRules) -> Outcome {
        let made = Place::of(&call.url).and_then(|place| {
            let request = build(self.clock.now().wall, &place, attempt, call, rules)?;
            Ok((place, request))
        });
        // It was checked when it was made, so that no later attempt would find it better.
        let (place, request) = match made {
            Ok(made) => made,
            Err(error) => return Outcome::GaveUp(format!("this cannot be called: {error}").into()),
        };
        let limit = call.timeout.map_or(attempt.timeout, |most| most.min(attempt.timeout));
        match self.call(request, place.name(), limit).await {
            Ok(answer) => self.outcome(&answer, place.name(), attempt, rules),
            Err(error) => Outcome::Failed { error: error.into(), retry_after: None },
        }
    }

    async fn call(
        &self,
        request: Request<Full<Bytes>>,
        host: impl Display,
        limit: Duration,
    ) -> Result<Answer, String> {
        let mut status = None;
        let answered = timeout(limit, async {
            let response = self.client.request(request).await.map_err(|error| explained(&error, &host))?;
            status = Some(response.status());
            let read = Answer::read(response, self.body_max).await;
            read.map_err(|error| format!("the answer from {host} broke off: {}", root(&error)))
        })
        .await;
        match (answered, status) {
            (Ok(answered), _) => answered,
            (Err(_), None) => Err(format!("no answer from {host} within {limit:?}")),
            (Err(_), Some(status)) => {
                Err(format!("HTTP {} from {host}, but no end of its body within {limit:?}", status.as_u16()))
            }
        }
    }

    fn outcome(&self, answer: &Answer, host: impl Display, attempt: &Attempt, rules: &QueueRules) -> Outcome {
        let now = system_time(self.clock.now().wall);
        match rules.success.judge(answer.status, &answer.headers, attempt.may_be_repeated, now) {
            Verdict::Done => Outcome::Succeeded(answer.result(self.result_max)),
            // It is in trouble, and is left alone when that happens again and again.
            Verdict::Retry(retry_after) if answer.status.is_server_error() => {
                Outcome::Failed { error: answer.error(host).into(), retry_after }
            }
            Verdict::Retry(retry_after) => Outcome::Refused {
                error: answer.error(host).into(),
                retry_after,
                is_busy: answer.status == StatusCode::TOO_MANY_REQUESTS,
            },
            Verdict::GiveUp => Outcome::GaveUp(answer.error(host).into()),
        }
    }
}

fn roots(options: &CallerOptions) -> RootCertStore {
    let mut roots = RootCertStore::empty();
    if options.native_roots {
        roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    }
    roots.add_parsable_certificates(options.extra_roots.iter().cloned());
    roots
}

fn tls(roots: RootCertStore) -> ClientConfig {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13, &rustls::version::TLS12])
        .expect("the provider knows both versions")
        .with_root_certificates(roots)
        .with_no_client_auth()
}

/// Why there was no answer, for people.
fn explained(error: &legacy::Error, host: &impl Display) -> String {
    if let Some(error) = find::<ConnectError>(error) {
        return error.to_string();
    }
    match find::<hyper::Error>(error) {
        Some(error) if error.is_incomplete_message() => {
            format!("{host} closed the connection before it answered")
        }
        Some(error) if error.is_parse_too_large() => {
            format!("the headers of the answer from {host} are too large")
        }
        Some(error) if error.is_parse() => format!("what {host} answered is not HTTP: {}", root(error)),
        _ => format!("the connection to {host} broke: {}", root(error)),
    }
}

fn find<'a, E: Error + 'static>(error: &'a (dyn Error + 'static)) -> Option<&'a E> {
    chain(error).find_map(<dyn Error>::downcast_ref)
}

/// The words of the error that all others came from.
fn root(error: &(dyn Error + 'static)) -> String {
    match find::<io::Error>(error) {
        Some(error) => io_text(error),
        None => chain(error).last().map(ToString::to_string).unwrap_or_default(),
    }
}

fn chain<'a>(error: &'a (dyn Error + 'static)) -> impl Iterator<Item = &'a (dyn Error + 'static)> {
    std::iter::successors(Some(error), |&error| error.source())
}
