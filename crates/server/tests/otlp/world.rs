//! A collector that keeps what it is told, somebody to be called, and a server between them.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::routing::post;
use http::{HeaderMap, StatusCode};
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::common::v1::{AnyValue, KeyValue};
use opentelemetry_proto::tonic::trace::v1::Span;
use prost::Message;
use punctual_server::{Options, Server};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;

type Told = Arc<Mutex<Vec<ExportTraceServiceRequest>>>;

/// A collector: `POST /v1/traces`, in protobuf.
pub struct Collector {
    pub url: String,
    told: Told,
    serving: JoinHandle<()>,
}

impl Collector {
    pub async fn start() -> Collector {
        let told = Told::default();
        let router = Router::new().route("/v1/traces", post(take)).with_state(told.clone());
        let (url, serving) = serve(router).await;
        Collector { url, told, serving }
    }

    /// Where it was.
    pub async fn close(self) -> String {
        self.serving.abort();
        self.serving.await.ok();
        self.url
    }

    /// All spans that it was told.
    pub fn spans(&self) -> Vec<Span> {
        let told = self.told.lock().expect("nothing panics while it is held");
        let resources = told.iter().flat_map(|request| &request.resource_spans);
        resources.flat_map(|of| &of.scope_spans).flat_map(|scope| scope.spans.clone()).collect()
    }

    /// The names of the services that told them.
    pub fn services(&self) -> Vec<String> {
        let told = self.told.lock().expect("nothing panics while it is held");
        let resources = told.iter().flat_map(|request| &request.resource_spans);
        let attributes = resources.filter_map(|of| of.resource.as_ref()).map(|of| &of.attributes);
        let mut names: Vec<String> = attributes.map(|of| text_of(of, "service.name")).collect();
        names.dedup();
        names
    }
}

async fn take(State(told): State<Told>, headers: HeaderMap, body: Bytes) -> StatusCode {
    assert_eq!(headers["content-type"], "application/x-protobuf");
    let request = ExportTraceServiceRequest::decode(body).expect("it is what OTLP says");
    told.lock().expect("nothing panics while it is held").push(request);
    StatusCode::OK
}

/// Somebody to be called, who tells with which `traceparent` it was.
pub struct Target {
    pub url: String,
    calls: mpsc::Receiver<String>,
}

impl Target {
    pub async fn start() -> Target {
        let (came, calls) = mpsc::channel(10);
        let called = async |State(came): State<mpsc::Sender<String>>, headers: HeaderMap| {
            let traceparent = headers.get("traceparent").and_then(|value| value.to_str().ok());
            came.send(traceparent.unwrap_or_default().to_owned()).await.ok();
        };
        let (url, _) = serve(Router::new().fallback(called).with_state(came)).await;
        Target { url: format!("{url}/secret/path"), calls }
    }

    pub async fn called(&mut self) -> String {
        self.calls.recv().await.expect("it is called")
    }
}

async fn serve(router: Router) -> (String, JoinHandle<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("the machine can do this");
    let url = format!("http://{}", listener.local_addr().expect("the machine can do this"));
    let serving = tokio::spawn(async move { axum::serve(listener, router).await.expect("it serves") });
    (url, serving)
}

/// A server that tells its spans.
pub struct World {
    address: SocketAddr,
    stop: oneshot::Sender<()>,
    running: JoinHandle<()>,
    _data: TempDir,
}

impl World {
    pub async fn start(endpoint: &str) -> World {
        let data = tempfile::tempdir().expect("the machine can do this");
        let options = Options {
            drain: Duration::from_secs(5),
            otlp_endpoint: Some(endpoint.to_owned()),
            ..Options::new(data.path(), ([127, 0, 0, 1], 0).into())
        };
        let server = Server::start(options).await.expect("it starts");
        let address = server.address().expect("it listens");
        let (stop, stopped) = oneshot::channel::<()>();
        let running = tokio::spawn(async move {
            server.run(async { stopped.await.unwrap_or_default() }).await.expect("it stops in good order");
        });
        World { address, stop, running, _data: data }
    }

    /// Makes a task that calls, as part of this trace.
    pub async fn make(&self, url: &str, traceparent: &str) {
        let body = serde_json::json!({"http": {"url": url}}).to_string();
        let request = format!(
            "POST /v1/queues/mail/tasks HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ntraceparent: {traceparent}\r\n\
             content-length: {}\r\n\r\n{body}",
            body.len()
        );
        let mut stream = TcpStream::connect(self.address).await.expect("it listens");
        stream.write_all(request.as_bytes()).await.expect("it reads");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.expect("it answers");
        assert!(answer.starts_with("HTTP/1.1 201"), "{answer}");
    }

    /// What was to be told is told when this returns, if there is anybody to tell.
    pub async fn stop(self) {
        self.stop.send(()).ok();
        self.running.await.expect("it does not panic");
    }
}

pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The text of an attribute.
pub fn attribute(span: &Span, name: &str) -> String {
    text_of(&span.attributes, name)
}

fn text_of(attributes: &[KeyValue], name: &str) -> String {
    let found = attributes.iter().find(|attribute| attribute.key == name);
    match found.and_then(|attribute| attribute.value.as_ref()) {
        Some(AnyValue { value: Some(Value::StringValue(text)) }) => text.clone(),
        other => panic!("{name} is {other:?}"),
    }
}
