//! Optional traces: what each phase did to an order, as spans for an OpenTelemetry collector.
//!
//! Ids and sampling follow from the request id (`domain::trace`), so processes agree without a message. While traces are off
//! every call here reads one static. While they are on, a span is a few words in a bounded queue; a span that does not fit is
//! dropped and counted, and no caller ever waits. A crash loses the spans in the queue and nothing else.

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

/// Waits a moment until the recorded spans are exported, at a stop.
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
pub(crate) fn clock() -> Option<SystemTime> {
    TRACES.get().map(|_on| SystemTime::now())
}

/// The trace of a request, if traces are on and it is sampled.
#[must_use]
pub(crate) fn of(request_id: RequestId) -> Option<Told> {
    let traces = TRACES.get()?;
    Trace::of(request_id, traces.per_million).map(|trace| Told { trace, traces })
}

/// How a step went.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Done {
    /// When it began.
    pub begun: SystemTime,
    /// What it led to; `None`: that is not known.
    pub state: Option<State>,
    /// Which attempt it was, from 1.
    pub attempt: u32,
    /// Whether the order is not where the step should have brought it.
    pub failed: bool,
}

/// A trace whose spans are recorded.
#[derive(Clone, Copy)]
pub(crate) struct Told {
    trace: Trace,
    traces: &'static Traces,
}

impl std::fmt::Debug for Told {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.trace.fmt(f)
    }
}

impl Told {
    /// Records a step, which ends now.
    pub(crate) fn tell(&self, step: TraceStep, done: Done) {
        let span = Span { trace: self.trace, step, done, ended: SystemTime::now() };
        if self.traces.queue.try_send(Message::Span(span)).is_err() {
            self.traces.dropped.increment(1);
        }
    }
}

/// A step without children, or a repeated step; the time of its begin distinguishes it from others.
#[must_use]
pub(crate) fn further(phase: Phase, begun: SystemTime) -> TraceStep {
    let since = begun.duration_since(UNIX_EPOCH).unwrap_or_default();
    TraceStep { phase, number: u64::try_from(since.as_nanos()).unwrap_or(u64::MAX).max(1) }
}

/// An order on its way through a phase that may take several attempts.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Trail {
    told: Told,
    begun: SystemTime,
    attempt: u32,
}

impl Trail {
    /// Begins now; `None` while traces are off, and for an order that is not traced. The id as text, as messages carry it.
    #[must_use]
    pub(crate) fn begin(request_id: &str) -> Option<Self> {
        let begun = clock()?;
        let told = of(RequestId::parse(request_id).ok()?)?;
        Some(Self { told, begun, attempt: 1 })
    }

    /// The attempt that began last has failed; the next one begins now.
    pub(crate) fn failed(&mut self, state: State) {
        self.told.tell(further(state.phase(), self.begun), self.done(state, true));
        *self = Self { begun: SystemTime::now(), attempt: self.attempt.saturating_add(1), ..*self };
    }

    /// The phase is done with it.
    pub(crate) fn through(&self, state: State) {
        self.told.tell(TraceStep::joint(state.phase()), self.done(state, false));
    }

    const fn done(&self, state: State, failed: bool) -> Done {
        Done { begun: self.begun, state: Some(state), attempt: self.attempt, failed }
    }
}
