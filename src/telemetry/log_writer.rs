//! Log lines are written by a thread of its own, from a bounded queue: a log that cannot be written costs lines and nothing else.
//!
//! A line that finds no room (the reader of standard error stands still) or that cannot be written (a full disk, a reader that
//! is gone) is dropped and counted; no task waits for it. Input: finished lines. Output: bytes on standard error, in order, and
//! the count of lines that are missing there. By hand, because tracing-appender bounds its queue in lines, not in bytes, and
//! counts no line that it could not write. A crash loses the lines that wait: a few milliseconds of them while the log is written.

use std::collections::VecDeque;
use std::io::Write;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Most that waits, bytes: some seconds of a log at debug level, should its reader stand still for so long.
const WAITING_BYTES_MAX: usize = 4 << 20;
/// What a line costs beside its text, bytes.
const LINE_BYTES: usize = 32;
/// A log that was cut off says so at most this often.
const REPORT_EVERY: Duration = Duration::from_secs(10);

#[derive(Default)]
struct WaitingLines {
    lines: VecDeque<Box<[u8]>>,
    bytes: usize,
    /// A line is being written.
    in_hand: bool,
}

/// Lines on their way to the thread that writes them.
pub(super) struct LogQueue {
    waiting: Mutex<WaitingLines>,
    came: Condvar,
    done: Condvar,
    dropped: AtomicU64,
}

impl LogQueue {
    pub(super) const fn new() -> Self {
        let waiting = WaitingLines { lines: VecDeque::new(), bytes: 0, in_hand: false };
        Self { waiting: Mutex::new(waiting), came: Condvar::new(), done: Condvar::new(), dropped: AtomicU64::new(0) }
    }

    fn waiting(&self) -> MutexGuard<'_, WaitingLines> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a line if there is room for it, else counts it. Never waits for the log.
    pub(super) fn put(&self, line: &[u8]) {
        let mut waiting = self.waiting();
        let bytes = waiting.bytes.saturating_add(line.len() + LINE_BYTES);
        if bytes > WAITING_BYTES_MAX {
            self.dropped.fetch_add(1, Ordering::Relaxed);
            return;
        }
        waiting.bytes = bytes;
        waiting.lines.push_back(line.into());
        drop(waiting);
        self.came.notify_one();
    }

    /// Lines that are missing in the log.
    pub(super) fn dropped_count(&self) -> u64 {
        self.dropped.load(Ordering::Relaxed)
    }

    /// Waits until what was put is written or dropped, for at most `patience`.
    pub(super) fn flush(&self, patience: Duration) {
        let busy = |waiting: &mut WaitingLines| waiting.in_hand || !waiting.lines.is_empty();
        drop(self.done.wait_timeout_while(self.waiting(), patience, busy));
    }

    fn next(&self) -> Box<[u8]> {
        let mut waiting = self.waiting();
        loop {
            if let Some(line) = waiting.lines.pop_front() {
                waiting.bytes = waiting.bytes.saturating_sub(line.len() + LINE_BYTES);
                waiting.in_hand = true;
                return line;
            }
            waiting = self.came.wait(waiting).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn finished(&self) {
        self.waiting().in_hand = false;
        self.done.notify_all();
    }

    /// Writes line after line, for ever. `report` gets the number of lines that are missing, once lines can be written again.
    pub(super) fn write_to(&self, mut sink: impl Write, report: impl Fn(u64)) {
        let (mut reported, mut last_report) = (0, None::<Instant>);
        loop {
            let written = sink.write_all(&self.next()).and_then(|()| sink.flush());
            if written.is_err() {
                self.dropped.fetch_add(1, Ordering::Relaxed);
            }
            self.finished();
            let dropped = self.dropped_count();
            if written.is_ok() && dropped > reported && last_report.is_none_or(|last| last.elapsed() > REPORT_EVERY) {
                report(dropped - reported);
                (reported, last_report) = (dropped, Some(Instant::now()));
            }
        }
    }
}

/// What the log's formatter writes its lines to. It never fails.
pub(super) struct QueuedLine<'a>(pub &'a LogQueue);

impl Write for QueuedLine<'_> {
    fn write(&mut self, line: &[u8]) -> std::io::Result<usize> {
        self.0.put(line);
        Ok(line.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Error, ErrorKind};
    use std::sync::{Arc, mpsc};

    const LONG: Duration = Duration::from_secs(20);

    /// A log that takes a line for each permit and gives it on; `Err` is a failed write.
    struct Permitted {
        permits: mpsc::Receiver<Result<(), ErrorKind>>,
        lines: mpsc::Sender<Vec<u8>>,
    }

    impl Write for Permitted {
        fn write(&mut self, line: &[u8]) -> std::io::Result<usize> {
            match self.permits.recv() {
                Ok(Ok(())) => {
                    drop(self.lines.send(line.to_vec()));
                    Ok(line.len())
                }
                Ok(Err(kind)) => Err(kind.into()),
                Err(gone) => Err(Error::other(gone)),
            }
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    struct Bench {
        queue: Arc<LogQueue>,
        permits: mpsc::Sender<Result<(), ErrorKind>>,
        lines: mpsc::Receiver<Vec<u8>>,
        reports: mpsc::Receiver<u64>,
    }

    impl Bench {
        fn new() -> Self {
            let (permits, taken) = mpsc::channel();
            let (sent, lines) = mpsc::channel();
            let (reported, reports) = mpsc::channel();
            let queue = Arc::new(LogQueue::new());
            let writing = queue.clone();
            std::thread::spawn(move || {
                writing.write_to(Permitted { permits: taken, lines: sent }, |count| reported.send(count).unwrap());
            });
            Self { queue, permits, lines, reports }
        }
    }

    #[test]
    fn lines_come_in_order_and_a_flush_waits_for_them() {
        let bench = Bench::new();
        for n in 0..100u8 {
            bench.queue.put(&[n]);
            bench.permits.send(Ok(())).unwrap();
        }
        bench.queue.flush(LONG);
        let written: Vec<u8> = bench.lines.try_iter().flatten().collect();
        assert_eq!((written, bench.queue.dropped_count()), ((0..100).collect(), 0));
    }

    #[test]
    fn a_reader_that_stands_still_costs_lines_and_no_time() {
        let bench = Bench::new();
        let line = [b'x'; 1 << 10];
        let (fit, more) = (WAITING_BYTES_MAX / (line.len() + LINE_BYTES), 500);
        for _ in 0..fit + more {
            bench.queue.put(&line);
        }
        // One line may be in the writer's hand.
        let dropped = bench.queue.dropped_count();
        assert!(dropped == more as u64 || dropped == more as u64 - 1, "{dropped} of {} are dropped", fit + more);
        bench.queue.flush(Duration::ZERO);
        for _ in 0..fit + 1 {
            bench.permits.send(Ok(())).unwrap();
        }
        assert_eq!(bench.reports.recv_timeout(LONG), Ok(dropped), "it says how many are missing");
        bench.queue.flush(LONG);
        assert_eq!(bench.lines.try_iter().count() as u64, (fit + more) as u64 - dropped);
    }

    #[test]
    fn a_line_that_cannot_be_written_is_counted_and_the_next_one_is_tried() {
        let bench = Bench::new();
        for permit in [Err(ErrorKind::StorageFull), Err(ErrorKind::BrokenPipe), Ok(())] {
            bench.permits.send(permit).unwrap();
        }
        for line in [b"a", b"b", b"c"] {
            bench.queue.put(line);
        }
        assert_eq!(bench.lines.recv_timeout(LONG), Ok(b"c".to_vec()));
        assert_eq!(bench.reports.recv_timeout(LONG), Ok(2));
        assert_eq!(bench.queue.dropped_count(), 2);
    }
}
