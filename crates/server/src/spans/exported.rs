//! Spans that are told to a collector, in batches, by a thread of their own.

use std::cell::Cell;
use std::sync::Arc;

use opentelemetry::propagation::{Extractor, Injector, TextMapPropagator};
use opentelemetry::trace::{
    Span as _, SpanBuilder, SpanId, SpanKind, Status, TraceContextExt, TraceId, TracerProvider,
};
use opentelemetry::{Context, KeyValue};
use opentelemetry_otlp::{Protocol, SpanExporter, WithExportConfig, WithHttpConfig};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::propagation::TraceContextPropagator;
use opentelemetry_sdk::trace::{IdGenerator, RandomIdGenerator, SdkTracer, SdkTracerProvider, Span};
use punctual::{Attempt, Outcome};
use url::Url;

use super::NoSpans;
use super::collector::Collector;
use crate::api::Surroundings;
use crate::call::{Call, span_of};

/// What OpenTelemetry's own variables say where the collector is, if nothing else does.
const VARIABLES: [&str; 2] = ["OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT"];
/// Where a collector takes spans.
const PATH: &str = "/v1/traces";

/// Tells spans, if there is anybody to tell. Clones are the same.
#[derive(Clone, Default)]
pub struct Spans(Option<Arc<Told>>);

struct Told {
    provider: SdkTracerProvider,
    tracer: SdkTracer,
}

/// The making of tasks. It ends when this is dropped.
pub struct CreateSpan {
    _span: Option<Span>,
}

/// An attempt. It ends when this is dropped, if not before.
pub struct AttemptSpan(Option<Span>);

impl Spans {
    /// Tells the collector at this endpoint, or at the one that OpenTelemetry's variables name; nobody if none is.
    pub fn open(endpoint: Option<&str>) -> Result<Spans, NoSpans> {
        let named = VARIABLES.iter().filter_map(|name| std::env::var(name).ok());
        let named: Vec<String> = match endpoint {
            Some(endpoint) => vec![endpoint.to_owned()],
            None => named.filter(|value| !value.is_empty()).collect(),
        };
        if named.is_empty() {
            return Ok(Spans::default());
        }
        let over_tls = named.iter().any(|url| !url.to_ascii_lowercase().starts_with("http:"));
        let client = Collector::new(over_tls).map_err(|error| NoSpans(format!("no TLS for it: {error}")))?;
        let mut exporter =
            SpanExporter::builder().with_http().with_protocol(Protocol::HttpBinary).with_http_client(client);
        if let Some(endpoint) = endpoint {
            exporter = exporter.with_endpoint(format!("{}{PATH}", endpoint.trim_end_matches('/')));
        }
        let exporter = exporter.build().map_err(|error| NoSpans(error.to_string()))?;
        let version = KeyValue::new("service.version", env!("CARGO_PKG_VERSION"));
        let resource = Resource::builder().with_service_name(service_name()).with_attribute(version).build();
        let provider = SdkTracerProvider::builder()
            .with_id_generator(SpanIds::default())
            .with_resource(resource)
            .with_batch_exporter(exporter)
            .build();
        let tracer = provider.tracer("punctual");
        Ok(Spans(Some(Arc::new(Told { provider, tracer }))))
    }

    /// Whether this can be had.
    pub fn check(_: Option<&str>) -> Result<(), NoSpans> {
        Ok(())
    }

    /// Tasks are being made: they are part of this span, which is part of the trace that their request is part of.
    pub fn creating(&self, queue: &str, surroundings: Surroundings) -> (Surroundings, CreateSpan) {
        let Some(told) = &self.0 else { return (surroundings, CreateSpan { _span: None }) };
        let attributes = [
            KeyValue::new("messaging.system", "punctual"),
            KeyValue::new("messaging.operation.name", "create"),
            KeyValue::new("messaging.operation.type", "create"),
            KeyValue::new("messaging.destination.name", queue.to_owned()),
        ];
        let span = SpanBuilder::from_name(format!("create {queue}"))
            .with_kind(SpanKind::Producer)
            .with_attributes(attributes)
            .start_with_context(&told.tracer, &parent(&surroundings));
        let within = Context::new().with_remote_span_context(span.span_context().clone());
        let mut carried = Surroundings::default();
        TraceContextPropagator::new().inject_context(&within, &mut carried);
        (carried, CreateSpan { _span: Some(span) })
    }

    /// A call is about to be made. Who is called hears of this span as its parent.
    pub fn attempt(&self, attempt: &Attempt, call: &Call, queue: &str) -> AttemptSpan {
        let Some(told) = &self.0 else { return AttemptSpan(None) };
        let (traceparent, tracestate) = (call.traceparent.clone(), call.tracestate.clone());
        let parent = parent(&Surroundings { traceparent, tracestate });
        // A call without a trace says nothing of one to whom it calls.
        if !parent.span().span_context().is_valid() {
            return AttemptSpan(None);
        }
        let token = attempt.token;
        let mut attributes = vec![
            KeyValue::new("http.request.method", call.method.clone()),
            KeyValue::new("messaging.system", "punctual"),
            KeyValue::new("messaging.destination.name", queue.to_owned()),
            KeyValue::new("messaging.message.id", token.id.to_string()),
            KeyValue::new("punctual.attempt", i64::from(token.attempt)),
        ];
        // Paths and queries may hold what is nobody's concern.
        if let Ok(url) = Url::parse(&call.url) {
            attributes.extend(url.host_str().map(|host| KeyValue::new("server.address", host.to_owned())));
            let port = url.port_or_known_default();
            attributes.extend(port.map(|port| KeyValue::new("server.port", i64::from(port))));
        }
        NEXT_SPAN.set(span_of(token));
        let span = SpanBuilder::from_name(call.method.clone())
            .with_kind(SpanKind::Client)
            .with_attributes(attributes)
            .start_with_context(&told.tracer, &parent);
        AttemptSpan(Some(span))
    }

    /// Tells what is left to be told. Waits for it, but not for ever.
    pub async fn close(&self) {
        let Some(told) = self.0.clone() else { return };
        // It waits for the thread that tells, which waits for this runtime.
        let closed = tokio::task::spawn_blocking(move || told.provider.shutdown()).await;
        if let Ok(Err(error)) = closed {
            tracing::warn!(%error, "the last spans could not be told");
        }
    }
}

impl AttemptSpan {
    /// It ended. What was answered is nobody's concern here.
    pub fn end(mut self, outcome: &Outcome) {
        let Some(span) = &mut self.0 else { return };
        let (outcome, is_well) = match outcome {
            Outcome::Succeeded(_) => ("succeeded", true),
            Outcome::Failed { .. } | Outcome::Refused { .. } => ("failed", false),
            Outcome::GaveUp(_) => ("gave_up", false),
            Outcome::Interrupted => ("interrupted", true),
            Outcome::NoReceiver => ("no_receiver", false),
        };
        span.set_attribute(KeyValue::new("punctual.outcome", outcome));
        if !is_well {
            span.set_status(Status::error(outcome));
        }
        span.end();
    }
}

/// As OpenTelemetry's own variable says.
fn service_name() -> String {
    std::env::var("OTEL_SERVICE_NAME")
        .ok()
        .filter(|name| !name.is_empty())
        .unwrap_or_else(|| "punctual".into())
}

/// The span that these name; none if it is not written as W3C has it.
fn parent(surroundings: &Surroundings) -> Context {
    TraceContextPropagator::new().extract_with_context(&Context::new(), surroundings)
}

impl Extractor for Surroundings {
    fn get(&self, key: &str) -> Option<&str> {
        match key {
            "traceparent" => self.traceparent.as_deref(),
            "tracestate" => self.tracestate.as_deref(),
            _ => None,
        }
    }

    fn keys(&self) -> Vec<&str> {
        vec!["traceparent", "tracestate"]
    }
}

impl Injector for Surroundings {
    fn set(&mut self, key: &str, value: String) {
        match key {
            "traceparent" => self.traceparent = Some(value),
            "tracestate" => self.tracestate = Some(value).filter(|value| !value.is_empty()),
            _ => {}
        }
    }
}

thread_local! {
    /// The next span that begins on this thread has this number; 0 lets chance decide.
    static NEXT_SPAN: Cell<u64> = const { Cell::new(0) };
}

/// Numbers by chance, but for calls: theirs follow from the attempt, and are in the request already.
#[derive(Debug, Default)]
struct SpanIds(RandomIdGenerator);

impl IdGenerator for SpanIds {
    fn new_trace_id(&self) -> TraceId {
        self.0.new_trace_id()
    }

    fn new_span_id(&self) -> SpanId {
        match NEXT_SPAN.take() {
            0 => self.0.new_span_id(),
            number => SpanId::from(number),
        }
    }
}
