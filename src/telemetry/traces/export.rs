//! From the queue to the collector: OTLP over HTTP, in batches, by one task.
//!
//! Each export has its deadline and is tried once: what a collector does not take is counted and gone, and the queue goes on
//! being emptied. Nothing but this task ever waits for the collector.

use super::SpanResult;
use crate::config;
use crate::domain::states::{Phase, State};
use crate::domain::trace::{Trace, TraceStep};
use opentelemetry::trace::{SpanContext, SpanId, SpanKind, Status, TraceFlags, TraceId, TraceState};
use opentelemetry::{InstrumentationScope, KeyValue};
use opentelemetry_otlp::{RetryPolicy, SpanExporter, WithExportConfig, WithHttpConfig};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::trace::{SpanData, SpanEvents, SpanExporter as _, SpanLinks};
use std::time::{Duration, SystemTime};
use tokio::sync::{mpsc, oneshot};

/// Spans in one export.
const BATCH_MAX: usize = 512;
/// A span waits at most this long for others to go with it.
const GATHER: Duration = Duration::from_secs(1);

/// What goes through the queue.
pub(super) enum Message {
    /// A span to export.
    Span(Span),
    /// Export what came before, then say so.
    Flush(oneshot::Sender<()>),
}

/// A span without texts, so that recording one allocates nothing.
pub(super) struct Span {
    pub trace: Trace,
    pub step: TraceStep,
    pub result: SpanResult,
    pub ended: SystemTime,
}

/// The exporter of the settings.
pub(super) fn exporter(settings: &config::Traces, node: &str) -> Result<SpanExporter, String> {
    let refused = |error: &dyn std::fmt::Display| format!("traces.otlp_endpoint: {error}");
    let timeout = Duration::from_millis(settings.export_timeout_ms);
    let client = reqwest::Client::builder().no_proxy().timeout(timeout).build().map_err(|error| refused(&error))?;
    let mut exporter = SpanExporter::builder()
        .with_http()
        .with_endpoint(&settings.otlp_endpoint)
        .with_timeout(timeout)
        .with_http_client(client)
        // Its pause between two tries would stop the thread, and a second try is worth less than the next batch.
        .with_retry_policy(RetryPolicy::disabled())
        .build()
        .map_err(|error| refused(&error))?;
    let named = Resource::builder_empty().with_service_name("seckill");
    exporter.set_resource(&named.with_attribute(KeyValue::new("service.instance.id", node.to_owned())).build());
    Ok(exporter)
}

/// Exports until the process ends.
pub(super) async fn run(exporter: SpanExporter, mut queue: mpsc::Receiver<Message>, timeout: Duration) {
    let (exported, failed) =
        (metrics::counter!("seckill_traces_exported_total"), metrics::counter!("seckill_traces_failed_total"));
    let mut failures = 0u32;
    let mut messages = Vec::with_capacity(BATCH_MAX);
    while queue.recv_many(&mut messages, BATCH_MAX).await > 0 {
        gather(&mut queue, &mut messages).await;
        let (batch, flushed) = sorted(&mut messages);
        let size = batch.len() as u64;
        let outcome = match size {
            0 => Ok(()),
            _ => match tokio::time::timeout(timeout, exporter.export(batch)).await {
                Ok(outcome) => outcome.map_err(|error| error.to_string()),
                Err(_) => Err(format!("no answer within {} ms", timeout.as_millis())),
            },
        };
        match outcome {
            Ok(()) => {
                exported.increment(size);
                failures = 0;
            }
            Err(error) => {
                failed.increment(size);
                // The first of a row is worth a warning, the rest would only fill the log.
                if failures == 0 {
                    tracing::warn!(%error, spans = size, "the collector does not take traces; orders are not affected");
                } else {
                    tracing::debug!(%error, spans = size, failures, "the collector still takes no traces");
                }
                failures = failures.saturating_add(1);
            }
        }
        for done in flushed {
            // The caller has stopped waiting.
            done.send(()).ok();
        }
    }
}

/// Waits a moment for a fuller batch, unless someone waits for it.
async fn gather(queue: &mut mpsc::Receiver<Message>, messages: &mut Vec<Message>) {
    let until = tokio::time::Instant::now() + GATHER;
    while messages.len() < BATCH_MAX && !messages.iter().any(|message| matches!(message, Message::Flush(_))) {
        let room = BATCH_MAX - messages.len();
        match tokio::time::timeout_at(until, queue.recv_many(messages, room)).await {
            Ok(1..) => {}
            Ok(0) | Err(_) => return,
        }
    }
}

fn sorted(messages: &mut Vec<Message>) -> (Vec<SpanData>, Vec<oneshot::Sender<()>>) {
    let (mut spans, mut flushed) = (Vec::with_capacity(messages.len()), Vec::new());
    for message in messages.drain(..) {
        match message {
            Message::Span(span) => spans.push(data(&span)),
            Message::Flush(done) => flushed.push(done),
        }
    }
    (spans, flushed)
}

/// The span in OpenTelemetry's words. Buyers are not named in it.
fn data(span: &Span) -> SpanData {
    let Span { trace, step, result, ended } = span;
    let phase = step.phase;
    let context = SpanContext::new(
        TraceId::from_bytes(trace.id()),
        SpanId::from_bytes(trace.span_id(*step)),
        TraceFlags::SAMPLED,
        false,
        TraceState::NONE,
    );
    let mut attributes = vec![
        KeyValue::new("seckill.request_id", trace.request_id.to_string()),
        KeyValue::new("seckill.attempt", i64::from(result.attempt)),
    ];
    if let Some(state) = result.state {
        attributes.push(KeyValue::new("seckill.code", state.code()));
        attributes.push(KeyValue::new("seckill.label", state.label()));
    }
    let parent = step.parent();
    SpanData {
        span_context: context,
        parent_span_id: parent.map_or(SpanId::INVALID, |parent| SpanId::from_bytes(trace.span_id(parent))),
        parent_span_is_remote: parent.is_some_and(|parent| parent.phase != Phase::P1Entry),
        span_kind: kind(phase),
        name: phase.name().into(),
        start_time: result.begun,
        // A clock that was set back in between must not make a span of negative length.
        end_time: (*ended).max(result.begun),
        attributes,
        dropped_attributes_count: 0,
        events: SpanEvents::default(),
        links: SpanLinks::default(),
        status: match (result.failed, result.state.map(State::meaning)) {
            (true, meaning) => Status::error(meaning.unwrap_or("no answer in time: the outcome is not known")),
            (false, _) => Status::Unset,
        },
        instrumentation_scope: InstrumentationScope::builder("seckill").with_version(env!("CARGO_PKG_VERSION")).build(),
    }
}

const fn kind(phase: Phase) -> SpanKind {
    match phase {
        Phase::P1Entry => SpanKind::Server,
        Phase::P2Reserve => SpanKind::Client,
        Phase::P3Relay => SpanKind::Producer,
        Phase::P4Persist => SpanKind::Consumer,
        Phase::P5Reconcile | Phase::P6Fulfil => SpanKind::Internal,
    }
}
