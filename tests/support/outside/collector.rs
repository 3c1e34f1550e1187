//! An OpenTelemetry collector as far as the tests need one: OTLP over HTTP in, spans out; or one that never answers.

use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::{KeyValue, any_value::Value};
use opentelemetry_proto::tonic::trace::v1::Span;
use prost::Message;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{JoinHandle, JoinSet};

/// A span as a test looks at it; ids in hexadecimal, empty when there is none.
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
    task: JoinHandle<()>,
}

impl Drop for Collector {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Collector {
    /// One that takes everything, or (`answers` false) reads everything and says nothing.
    pub async fn start(answers: bool) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let endpoint = format!("http://{}/v1/traces", listener.local_addr().expect("an address"));
        let seen = Arc::new(Mutex::new(Vec::new()));
        let all = Arc::clone(&seen);
        let task = tokio::spawn(async move {
            let mut clients = JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                clients.spawn(serve(stream, Arc::clone(&all), answers));
            }
        });
        Self { endpoint, seen, task }
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

/// Reads requests of one connection; ends with it.
async fn serve(stream: TcpStream, all: Arc<Mutex<Vec<Seen>>>, answers: bool) {
    let mut stream = BufReader::new(stream);
    loop {
        let (mut length, mut first) = (0, String::new());
        loop {
            let mut line = String::new();
            if stream.read_line(&mut line).await.unwrap_or(0) == 0 {
                return;
            }
            let line = line.trim().to_ascii_lowercase();
            if let Some(value) = line.strip_prefix("content-length: ") {
                length = value.parse().expect("a length");
            }
            if line.is_empty() {
                break;
            }
            first = if first.is_empty() { line } else { first };
        }
        assert_eq!(first, "post /v1/traces http/1.1");
        let mut body = vec![0; length];
        if stream.read_exact(&mut body).await.is_err() {
            return;
        }
        if !answers {
            continue;
        }
        let export = ExportTraceServiceRequest::decode(body.as_slice()).expect("an export");
        all.lock().unwrap_or_else(PoisonError::into_inner).extend(seen(export));
        let head = b"HTTP/1.1 200 OK\r\nContent-Type: application/x-protobuf\r\nContent-Length: 0\r\n\r\n";
        if stream.write_all(head).await.is_err() {
            return;
        }
    }
}

fn seen(export: ExportTraceServiceRequest) -> Vec<Seen> {
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
