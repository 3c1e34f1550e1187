//! The process' log: one set-up, lines to standard error through [`LogQueue`], and what a process says last.
//!
//! Input: events, panics. Output: lines of text or JSON. Nothing here fails or waits because standard error does, but for the end
//! of the process, which waits for a moment. A crash loses the lines that wait.

use super::http_request_id::WithRequestId;
use super::log_writer::{LogQueue, QueuedLine};
use crate::config::{Log, LogFormat};
use std::backtrace::{Backtrace, BacktraceStatus};
use std::sync::OnceLock;
use std::time::Duration;
use tracing_subscriber::EnvFilter;

/// Before the user's filter, so that it can ask for them again: the HTTP library's own errors. They are a line for each malformed
/// request, so anybody could fill the log; `seckill_http_connections_closed_total` counts these.
const QUIET: &str = "actix_http=off";
/// How long the end of a process waits for the rest of its log.
const LAST_FLUSH: Duration = Duration::from_secs(1);

static QUEUE: LogQueue = LogQueue::new();
/// Set with the thread that writes.
static WRITER: OnceLock<Result<(), String>> = OnceLock::new();

/// Sets up logging to standard error. A second call changes nothing (tests share a process).
///
/// # Errors
/// The filter cannot be read, or no thread can be started; a text for people.
pub fn init_logs(log: &Log) -> Result<(), String> {
    let filter = filter(&log.level)?;
    WRITER.get_or_init(start_writer).clone()?;
    let lines = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(|| QueuedLine(&QUEUE))
        // It would complain on standard error, which is what failed, and panic.
        .log_internal_errors(false);
    let done = match log.format {
        LogFormat::Text => {
            let ansi = std::io::IsTerminal::is_terminal(&std::io::stderr());
            lines.with_ansi(ansi).map_event_format(WithRequestId).try_init()
        }
        LogFormat::Json => lines.json().flatten_event(true).map_event_format(WithRequestId).try_init(),
    };
    // Already set up by an earlier call in this process: keep that one.
    drop(done);
    Ok(())
}

/// What `log.level` lets through. An empty one is errors only.
fn filter(level: &str) -> Result<EnvFilter, String> {
    let level = if level.trim().is_empty() { "error" } else { level };
    let read = |text: &str| {
        EnvFilter::try_new(text)
            .map_err(|error| format!("log.level: {level:?}: {error}, expected e.g. info or warn,seckill=debug"))
    };
    // By itself first: an error names no more than what was given.
    read(level)?;
    read(&format!("{QUIET},{level}"))
}

fn start_writer() -> Result<(), String> {
    let write = || {
        QUEUE.write_to(std::io::stderr(), |lines| {
            tracing::warn!(lines, "lines of this log are missing: it could not be written, or not as fast as it came");
        });
    };
    let thread = std::thread::Builder::new().name("log".to_owned()).spawn(write);
    thread.map(drop).map_err(|error| format!("the log's thread cannot be started: {error}"))
}

/// Lines that are missing in this process' log.
pub(super) fn lines_dropped() -> u64 {
    QUEUE.dropped_count()
}

/// Has panics written as lines of the log: the standard hook writes to standard error itself, and would wait for its reader.
pub(crate) fn log_panics() {
    std::panic::set_hook(Box::new(|panic| {
        let thread = std::thread::current();
        let thread = thread.name().unwrap_or("without a name");
        let backtrace = Backtrace::capture();
        if backtrace.status() == BacktraceStatus::Captured {
            tracing::error!(thread, %panic, %backtrace, "a thread panicked");
        } else {
            tracing::error!(thread, %panic, "a thread panicked");
        }
    }));
}

/// Ends the log: adds `text` where there is one and waits for a moment until all is written. `false`: this process has no log,
/// and the text was not written.
pub fn last_words(text: Option<&str>) -> bool {
    if WRITER.get().is_none() {
        return false;
    }
    if let Some(text) = text {
        QUEUE.put(format!("{text}\n").as_bytes());
    }
    QUEUE.flush(LAST_FLUSH);
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use tracing_subscriber::filter::LevelFilter;

    #[test]
    fn an_empty_level_is_errors_only_and_what_cannot_be_read_is_named() {
        for (level, most) in [
            ("", LevelFilter::ERROR),
            (" \t", LevelFilter::ERROR),
            ("warn", LevelFilter::WARN),
            ("off,seckill=debug", LevelFilter::DEBUG),
        ] {
            let filter = filter(level).unwrap();
            assert_eq!(filter.max_level_hint(), Some(most), "{level:?}");
            assert!(filter.to_string().contains(QUIET), "{filter}");
        }
        let error = filter("seckill=loud").unwrap_err();
        assert!(error.starts_with("log.level: \"seckill=loud\""), "{error}");
    }
}
