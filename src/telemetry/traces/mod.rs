//! Optional traces: what each phase did to an order, as spans for an OpenTelemetry collector.
//!
//! Ids and sampling follow from the request id (`domain::trace`), so processes agree without a message. While traces are off
//! every call here is one read of a static. While they are on, a span is a few words put into a bounded queue. A span that does
//! not fit is dropped and counted; no caller waits. A crash loses the spans in the queue and nothing else.

mod export;

use crate::config;
use crate::domain::ids::RequestId;
use crate::domain::states::{Phase, State};
use crate::domain::trace::{Trace, TraceStep};
use export::{Message, Span, exporter, run};
use std::sync::OnceLock;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tokio::sync::{mpsc, oneshot};

static TRACES: OnceLock<Traces> = OnceLock::new();

/// A stopping process waits this long for its last spans to be taken.
const FLUSH_MAX: Duration = Duration::from_secs(2);

struct Traces {
    per_million: u32,
    queue: mpsc::Sender<Message>,
    dropped: metrics::Counter,
}

/// Starts exporting, if the settings name a collector; the first call of a process decides.
///
/// # Errors
/// Why the collector's address cannot be used.
pub(crate) fn start(settings: &config::Traces, node: &str) -> Result<(), String> {
    if settings.otlp_endpoint.is_empty() || TRACES.get().is_some() {
        return Ok(());
    }
    let exporter = exporter(settings, node)?;
    let (queue, receiver) = mpsc::channel(settings.queue_max);
    let dropped = metrics::counter!("seckill_traces_dropped_total");
    let traces = Traces { per_million: settings.sample_per_million, queue, dropped };
    if TRACES.set(traces).is_ok() {
        tokio::spawn(run(exporter, receiver, Duration::from_millis(settings.export_timeout_ms)));
        tracing::info!(endpoint = settings.otlp_endpoint, per_million = settings.sample_per_million, "traces");
    }
    Ok(())
}

/// Waits a moment until the spans recorded so far are exported, at a stop.
pub(crate) async fn flush() {
    let Some(traces) = TRACES.get() else { return };
    let (done, flushed) = oneshot::channel();
    let flushing = async {
        if traces.queue.send(Message::Flush(done)).await.is_ok() {
            drop(flushed.await);
        }
    };
    if tokio::time::timeout(FLUSH_MAX, flushing).await.is_err() {
        tracing::debug!("the last spans are not exported: the collector is too slow");
    }
}

/// Now, if traces are on.
#[must_use]
pub(crate) fn now() -> Option<SystemTime> {
    TRACES.get().map(|_on| SystemTime::now())
}

/// The trace of a request, if traces are on and it is sampled.
#[must_use]
pub(crate) fn sampled(request_id: RequestId) -> Option<SampledTrace> {
    let traces = TRACES.get()?;
    Trace::of(request_id, traces.per_million).map(|trace| SampledTrace { trace, traces })
}

/// The result of a step, for its span.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SpanResult {
    /// When it began.
    pub begun: SystemTime,
    /// The state that it led to; `None`: not known.
    pub state: Option<State>,
    /// Which attempt it was, from 1.
    pub attempt: u32,
    /// Whether the order is not where the step should have brought it.
    pub failed: bool,
}

/// The trace of a sampled order, with the queue that its spans go to.
#[derive(Clone, Copy)]
pub(crate) struct SampledTrace {
    trace: Trace,
    traces: &'static Traces,
}

impl std::fmt::Debug for SampledTrace {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.trace.fmt(f)
    }
}

impl SampledTrace {
    /// Records the span of a step, which ends now.
    pub(crate) fn record(&self, step: TraceStep, result: SpanResult) {
        let span = Span { trace: self.trace, step, result, ended: SystemTime::now() };
        if self.traces.queue.try_send(Message::Span(span)).is_err() {
            self.traces.dropped.increment(1);
        }
    }
}

/// A step without children: a failed attempt, or a repeat of a step. Its number is the time at which it began.
#[must_use]
pub(crate) fn leaf(phase: Phase, begun: SystemTime) -> TraceStep {
    let since = begun.duration_since(UNIX_EPOCH).unwrap_or_default();
    TraceStep { phase, number: u64::try_from(since.as_nanos()).unwrap_or(u64::MAX).max(1) }
}

/// The spans of one order in a phase that may take several attempts: one span an attempt.
#[derive(Debug, Clone, Copy)]
pub(crate) struct AttemptSpans {
    trace: SampledTrace,
    begun: SystemTime,
    attempt: u32,
}

impl AttemptSpans {
    /// Begins the first attempt now; `None` while traces are off, and for an order that is not sampled. The id is text, as in messages.
    #[must_use]
    pub(crate) fn begin(request_id: &str) -> Option<Self> {
        let begun = now()?;
        let trace = sampled(RequestId::parse(request_id).ok()?)?;
        Some(Self { trace, begun, attempt: 1 })
    }

    /// Ends the present attempt as failed, and begins the next one.
    pub(crate) fn fail_attempt(&mut self, state: State) {
        self.trace.record(leaf(state.phase(), self.begun), self.result(state, true));
        *self = Self { begun: SystemTime::now(), attempt: self.attempt.saturating_add(1), ..*self };
    }

    /// Ends the present attempt as the one that finished the phase.
    pub(crate) fn finish(&self, state: State) {
        self.trace.record(TraceStep::main(state.phase()), self.result(state, false));
    }

    const fn result(&self, state: State, failed: bool) -> SpanResult {
        SpanResult { begun: self.begun, state: Some(state), attempt: self.attempt, failed }
    }
}
