//! An OpenTelemetry collector as far as the tests need one: OTLP over HTTP in, spans out; or one that never answers.

use super::http_server::{HttpReply, HttpServer};
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::{KeyValue, any_value::Value};
use opentelemetry_proto::tonic::trace::v1::Span;
use prost::Message;
use std::sync::{Arc, Mutex, PoisonError};

/// A span as a test reads it; ids in hexadecimal, empty when there is none.
#[derive(Debug, Clone)]
pub struct Seen {
    /// Whose: `service.instance.id`.
    pub by: String,
    pub trace: String,
    pub id: String,
    pub parent: String,
    pub name: String,
    /// Its state's code.
    pub code: String,
    pub request_id: String,
    pub attempt: i64,
    pub failed: bool,
    /// Nanoseconds it took; negative when it ends before it begins.
    pub took: i128,
}

/// Listens until it is dropped.
pub struct Collector {
    /// For `traces.otlp_endpoint`.
    pub endpoint: String,
    seen: Arc<Mutex<Vec<Seen>>>,
    _server: HttpServer,
}

impl Collector {
    /// One that takes everything, or (`answers` false) reads everything and says nothing.
    pub async fn start(answers: bool) -> Self {
        let seen = Arc::<Mutex<Vec<Seen>>>::default();
        let all = Arc::clone(&seen);
        let server = HttpServer::start(None, move |call| {
            assert_eq!(call.line, "POST /v1/traces HTTP/1.1");
            if !answers {
                return HttpReply::pieces(vec![]);
            }
            let export = ExportTraceServiceRequest::decode(call.body.as_slice()).expect("an export");
            all.lock().unwrap_or_else(PoisonError::into_inner).extend(spans(export));
            HttpReply::new("200 OK", "Content-Type: application/x-protobuf\r\n", b"")
        })
        .await;
        Self { endpoint: server.url("/v1/traces"), seen, _server: server }
    }

    /// Every span of a request so far.
    pub fn of(&self, request_id: &str) -> Vec<Seen> {
        let seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        seen.iter().filter(|span| span.request_id == request_id).cloned().collect()
    }

    /// How many spans there are.
    pub fn count(&self) -> usize {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).len()
    }
}

fn spans(export: ExportTraceServiceRequest) -> Vec<Seen> {
    let mut seen = Vec::new();
    for of_resource in export.resource_spans {
        let resource = of_resource.resource.expect("a resource").attributes;
        assert_eq!(text(&resource, "service.name"), "seckill");
        let by = text(&resource, "service.instance.id");
        let spans = of_resource.scope_spans.into_iter().flat_map(|scope| scope.spans);
        seen.extend(spans.map(|span| one(&by, &span)));
    }
    seen
}

fn one(by: &str, span: &Span) -> Seen {
    let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    let number = |name: &str| match value(&span.attributes, name) {
        Some(Value::IntValue(number)) => number,
        other => panic!("{name}: {other:?}"),
    };
    Seen {
        by: by.to_owned(),
        trace: hex(&span.trace_id),
        id: hex(&span.span_id),
        parent: hex(&span.parent_span_id),
        name: span.name.clone(),
        code: text(&span.attributes, "seckill.code"),
        request_id: text(&span.attributes, "seckill.request_id"),
        attempt: number("seckill.attempt"),
        // 2: STATUS_CODE_ERROR.
        failed: span.status.as_ref().is_some_and(|status| status.code == 2),
        took: i128::from(span.end_time_unix_nano) - i128::from(span.start_time_unix_nano),
    }
}

fn value(attributes: &[KeyValue], name: &str) -> Option<Value> {
    attributes.iter().find(|pair| pair.key == name).and_then(|pair| pair.value.clone()?.value)
}

fn text(attributes: &[KeyValue], name: &str) -> String {
    match value(attributes, name) {
        Some(Value::StringValue(text)) => text,
        None => String::new(),
        other => panic!("{name}: {other:?}"),
    }
}
