//! Spans, as a real collector hears them: from the request that makes a task to the call that it makes.

mod world;

use opentelemetry_proto::tonic::trace::v1::Span;
use opentelemetry_proto::tonic::trace::v1::span::SpanKind;
use punctual_client::Client;
use punctual_client::wire::{Http, NewTask};
use tokio::io::{AsyncBufReadExt, BufReader};

use world::{Collector, Target, World, attribute, hex};

const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
const CALLER: &str = "00f067aa0ba902b7";

/// The span of this kind in a trace.
fn one_of(spans: &[Span], kind: SpanKind) -> &Span {
    let mut found = spans.iter().filter(|span| span.kind() == kind);
    let one = found.next().unwrap_or_else(|| panic!("there is no {kind:?} in {spans:#?}"));
    assert!(found.next().is_none(), "there is more than one {kind:?} in {spans:#?}");
    one
}

#[tokio::test]
async fn the_call_is_a_child_of_the_request_that_made_the_task() {
    let (collector, mut target) = (Collector::start().await, Target::start().await);
    let world = World::start(&collector.url).await;
    world.make(&target.url, &format!("00-{TRACE}-{CALLER}-01")).await;
    let called = target.called().await;
    world.stop().await;

    let spans = collector.spans();
    let (made, call) = (one_of(&spans, SpanKind::Producer), one_of(&spans, SpanKind::Client));
    assert_eq!((made.name.as_str(), call.name.as_str()), ("create mail", "POST"));
    assert_eq!((hex(&made.trace_id), hex(&call.trace_id)), (TRACE.to_owned(), TRACE.to_owned()));
    assert_eq!(hex(&made.parent_span_id), CALLER, "whoever asked is the parent");
    assert_eq!(call.parent_span_id, made.span_id, "the request is the parent of the call");
    assert_eq!(called, format!("00-{TRACE}-{}-01", hex(&call.span_id)), "who is called hears of its parent");
    assert_eq!(attribute(made, "messaging.destination.name"), "mail");
    assert_eq!(attribute(call, "server.address"), "127.0.0.1");
    assert_eq!(attribute(call, "punctual.outcome"), "succeeded");
    assert!(!format!("{spans:?}").contains("/secret/path"), "paths may hold what is nobody's concern");
}

#[tokio::test]
async fn a_request_without_a_trace_begins_one_and_one_that_is_not_sampled_is_not_told() {
    let (collector, mut target) = (Collector::start().await, Target::start().await);
    let world = World::start(&collector.url).await;
    world.make(&target.url, &format!("00-{TRACE}-{CALLER}-00")).await;
    let unsampled = target.called().await;
    assert!(unsampled.starts_with(&format!("00-{TRACE}-")) && unsampled.ends_with("-00"), "{unsampled}");
    world.make(&target.url, "no trace").await;
    target.called().await;
    world.stop().await;

    let spans = collector.spans();
    let (made, call) = (one_of(&spans, SpanKind::Producer), one_of(&spans, SpanKind::Client));
    assert!(made.parent_span_id.is_empty() && hex(&made.trace_id) != TRACE, "{made:?}");
    assert_eq!((&call.trace_id, &call.parent_span_id), (&made.trace_id, &made.span_id));
}

#[tokio::test]
async fn a_collector_that_is_not_there_holds_up_nobody() {
    let mut target = Target::start().await;
    // Nobody listens there any more.
    let gone = Collector::start().await.close().await;
    let world = World::start(&gone).await;
    world.make(&target.url, &format!("00-{TRACE}-{CALLER}-01")).await;
    target.called().await;
    world.stop().await;
}

#[tokio::test]
async fn the_program_obeys_the_variables_of_opentelemetry() {
    let (collector, mut target) = (Collector::start().await, Target::start().await);
    let (data, nobody) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let mut program = tokio::process::Command::new(env!("CARGO_BIN_EXE_punctual"))
        .args(["serve", "--listen", "127.0.0.1:0", "--json", "--data"])
        .arg(data.path())
        .env("OTEL_EXPORTER_OTLP_ENDPOINT", &collector.url)
        .env("OTEL_SERVICE_NAME", "reminders")
        // A machine without any certificates.
        .env("SSL_CERT_DIR", nobody.path())
        .env("SSL_CERT_FILE", nobody.path().join("none.pem"))
        .stdout(std::process::Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    let mut said = String::new();
    BufReader::new(program.stdout.take().unwrap()).read_line(&mut said).await.unwrap();
    let said: serde_json::Value = serde_json::from_str(&said).unwrap();
    let client = Client::new(said["url"].as_str().unwrap()).unwrap();
    client.create("mail", &NewTask::new().http(Http::post(&target.url))).await.unwrap();
    target.called().await;
    let pid = program.id().and_then(|id| rustix::process::Pid::from_raw(id as i32)).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
    assert!(program.wait().await.unwrap().success());

    let spans = collector.spans();
    let (made, call) = (one_of(&spans, SpanKind::Producer), one_of(&spans, SpanKind::Client));
    assert_eq!(call.parent_span_id, made.span_id);
    assert_eq!(collector.services(), ["reminders"]);
}
