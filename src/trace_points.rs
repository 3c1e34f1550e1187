//! Lines that a test build writes at each step of a request: what a run did, for a checker that asks whether it was allowed.
//!
//! Phase: all. Input: the reply of a server, or what a process is about to send. Output: one JSON line in a file of this process,
//! in the folder that `SECKILL_TRACE` names. A crash leaves whole lines: each is one write, to a file that is only appended to; the
//! last one may lack its end, and then the step that it was about may have happened or not.
//!
//! Only with the feature `faults`, as the crash points that these stand beside; without it every call here is an empty inline
//! function, and what it would write is not computed.
//!
//! | field | means |
//! |---|---|
//! | `n` | the line's number in its process, without gaps |
//! | `at` | its number among all processes of the run: a counter in memory that they share, the file `order` of the folder. No clock: what ended before something began has a lower number |
//! | `point` | the step, see [`TracePoint`] |
//! | others | what the step was about: `rid`, `sale`, `shard`, `epoch`, `no` (acceptance number), `entry`, `tag`, `attempts`, `verdict`, … |
//!
//! An answer that never came leaves no line. So each step at a server is between two lines: the one that began it, and its reply.

use crate::domain::message::OrderMessage;
use serde_json::{Map, Value, json};

/// Longest file of a process, bytes; its last line says that it was cut.
#[cfg(feature = "faults")]
const FILE_MAX: u64 = 1 << 30;

macro_rules! trace_points {
    ($($(#[$doc:meta])* $name:ident = $code:literal,)*) => {
        /// A step, or its beginning.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub(crate) enum TracePoint { $($(#[$doc])* $name,)* }

        impl TracePoint {
            /// As in the lines.
            #[cfg_attr(not(feature = "faults"), allow(dead_code, reason = "no line is written"))]
            const fn code(self) -> &'static str {
                match self { $(Self::$name => $code,)* }
            }
        }
    };
}

trace_points! {
    /// P2: the script is about to be called for a request.
    Ask = "ask",
    /// P2: its reply. `verdict`; `replicated` is false where too few replicas have it.
    Reserved = "reserved",
    /// P2: no reply that can be read; it may have run, and may still run.
    Unanswered = "unanswered",
    /// P2: nothing ran.
    NotRun = "not_run",
    /// P2: the ledger was asked for a request. `verdict`.
    LookedUp = "looked_up",
    /// P3: a relay has an entry.
    Read = "read",
    /// P3: it is about to be sent.
    Publish = "publish",
    /// P3: the broker's answer about an entry, or that there is none. `verdict`.
    Answer = "answer",
    /// P3: it is acknowledged and deleted.
    Done = "done",
    /// P3: an attempt is counted. `attempts`; 0: another relay has it.
    Counted = "counted",
    /// P3: about to be parked.
    Park = "park",
    /// P3: `relay_park.lua` has answered. `verdict`.
    Parked = "parked",
    /// P4: an order was delivered. `tag`, `attempts`.
    Delivered = "delivered",
    /// P4, P5, operators: a request is about to be decided. `by`.
    Decide = "decide",
    /// The same is over. `verdict`, `by`.
    Decided = "decided",
    /// P4: what the delivery came to. `state`.
    Handled = "handled",
    /// P4: the broker has the copy of a message that is sent back.
    Copied = "copied",
    /// P4: about to be acknowledged. `tag`.
    Ack = "ack",
    /// A ledger record is marked as settled. `verdict`.
    Settled = "settled",
    /// P5: settled records were removed from the ledger.
    Trimmed = "trimmed",
    /// P5: an audit begins to read a sale.
    AuditBegun = "audit_begun",
    /// P5: an audit of a sale is over: its sums, and how much it found.
    Audited = "audited",
    /// P5: a request has no outcome, is in no dead-letter queue, and its window is over.
    Missing = "missing",
    /// An operator's entry of a dead-letter queue is removed.
    Unparked = "unparked",
    /// P6: a change of an order is written, not committed. `event`.
    OrderWritten = "order_written",
    /// P6: it is committed.
    OrderChanged = "order_changed",
    /// A grant was given to a shard. `grant`, `units`, `verdict`.
    Granted = "granted",
    /// A sale's keys are frozen on a shard.
    Frozen = "frozen",
    /// P5: `rebuild_begin.lua` has answered. `verdict`.
    RebuildBegun = "rebuild_begun",
    /// P5: what a sale may sell is fixed in the database. `units`.
    RebuildFixed = "rebuild_fixed",
    /// P5: `rebuild_end.lua` has answered. `verdict`.
    RebuildEnded = "rebuild_ended",
    /// P2: units were taken out of a bucket. `transfer`, `units`.
    Taken = "taken",
    /// P2: they were given to another one. `verdict`.
    Given = "given",
    /// P2: the record of a transfer is removed.
    Forgotten = "forgotten",
}

/// Writes a line, if the process is traced: `trace_point!(Read { rid: id, entry: "1-1" });`, or with what is known of an order before
/// it: `trace_point!(Decided, &order, { verdict: "ORDERED" });`
macro_rules! trace_point {
    ($point:ident { $($field:ident: $value:expr),* $(,)? }) => {
        if $crate::trace_points::is_on() {
            $crate::trace_points::TracePoint::$point.write(&serde_json::json!({ $(stringify!($field): $value),* }));
        }
    };
    ($point:ident, $order:expr, { $($field:ident: $value:expr),* $(,)? }) => {
        if $crate::trace_points::is_on() {
            let about = $crate::trace_points::of_order($order, serde_json::json!({ $(stringify!($field): $value),* }));
            $crate::trace_points::TracePoint::$point.write(&about);
        }
    };
}

pub(crate) use trace_point;

/// What a line says of an order, and more.
pub(crate) fn of_order(order: &OrderMessage, more: Value) -> Value {
    let purchase = &order.purchase;
    let mut fields = Map::new();
    if let Value::Object(more) = more {
        fields.extend(more);
    }
    let of_order = json!({
        "rid": purchase.request_id.to_string(), "sale": purchase.sale_id.as_str(), "user": purchase.user_id.as_str(),
        "qty": purchase.quantity.get(), "shard": order.shard, "epoch": order.epoch, "no": order.number,
    });
    if let Value::Object(of_order) = of_order {
        fields.extend(of_order);
    }
    Value::Object(fields)
}

/// Whether this process writes lines.
#[cfg(feature = "faults")]
#[inline]
pub(crate) fn is_on() -> bool {
    file::is_open()
}

/// Whether this process writes lines: no.
#[cfg(not(feature = "faults"))]
#[inline]
pub(crate) const fn is_on() -> bool {
    false
}

impl TracePoint {
    /// Writes its line; written as [`trace_point!`].
    #[cfg(feature = "faults")]
    pub(crate) fn write(self, about: &Value) {
        file::write(self.code(), about);
    }

    /// Writes nothing.
    #[cfg(not(feature = "faults"))]
    #[inline]
    #[allow(clippy::unused_self, reason = "as in the builds that write")]
    pub(crate) fn write(self, _about: &Value) {}
}

/// Reads `SECKILL_TRACE`; called once, at the start of the process.
pub(crate) fn open() {
    #[cfg(feature = "faults")]
    file::open();
}

#[cfg(feature = "faults")]
mod file {
    use super::FILE_MAX;
    use serde_json::{Value, json};
    use std::fs::{File, OpenOptions};
    use std::io::Write;
    use std::os::fd::AsRawFd;
    use std::path::Path;
    use std::sync::atomic::{AtomicU64, Ordering};
    use std::sync::{Mutex, OnceLock, PoisonError};

    /// The file of this process.
    struct Lines {
        file: File,
        /// Of the next line.
        number: u64,
        written: u64,
        is_cut: bool,
    }

    struct Trace {
        order: &'static AtomicU64,
        lines: Mutex<Lines>,
    }

    static TRACE: OnceLock<Trace> = OnceLock::new();

    pub(super) fn is_open() -> bool {
        TRACE.get().is_some()
    }

    /// Opens the file. A folder that cannot be used is an error of the test, and the log says so.
    pub(super) fn open() {
        let Some(folder) = std::env::var_os("SECKILL_TRACE") else { return };
        match begin(Path::new(&folder)) {
            Ok(trace) => {
                let role = role();
                if TRACE.set(trace).is_ok() {
                    write("process", &json!({ "role": role, "pid": std::process::id() }));
                }
            }
            Err(error) => tracing::error!(%error, ?folder, "SECKILL_TRACE names no folder that can be written to"),
        }
    }

    fn begin(folder: &Path) -> std::io::Result<Trace> {
        let order = shared_counter(&folder.join("order"))?;
        // A process id may come again within a run; this number does not.
        let first = order.fetch_add(1, Ordering::SeqCst);
        let name = format!("{}-{}-{first}.jsonl", role(), std::process::id());
        let file = OpenOptions::new().append(true).create_new(true).open(folder.join(name))?;
        Ok(Trace { order, lines: Mutex::new(Lines { file, number: 0, written: 0, is_cut: false }) })
    }

    /// A counter in memory that all processes with this file share. It outlives each of them.
    fn shared_counter(path: &Path) -> std::io::Result<&'static AtomicU64> {
        let file = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path)?;
        file.set_len(8)?;
        let (access, shared) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED);
        // SAFETY: a new mapping of 8 bytes of a file that is as long. It is never unmapped, so the reference may live for ever.
        let at = unsafe { libc::mmap(std::ptr::null_mut(), 8, access, shared, file.as_raw_fd(), 0) };
        if at == libc::MAP_FAILED {
            return Err(std::io::Error::last_os_error());
        }
        // SAFETY: mapped above, on a border of pages, and every process uses it as an atomic number only.
        Ok(unsafe { AtomicU64::from_ptr(at.cast()) })
    }

    /// The role in the arguments, or that this is a command.
    fn role() -> String {
        let mut args = std::env::args().skip_while(|arg| arg != "--role").skip(1);
        args.next().unwrap_or_else(|| "command".to_owned())
    }

    pub(super) fn write(point: &str, about: &Value) {
        let Some(trace) = TRACE.get() else { return };
        // A panic elsewhere leaves it whole. With the lock both numbers and the order of the file agree.
        let mut lines = trace.lines.lock().unwrap_or_else(PoisonError::into_inner);
        if lines.is_cut {
            return;
        }
        lines.is_cut = lines.written >= FILE_MAX;
        let mut line = json!({ "n": lines.number, "at": trace.order.fetch_add(1, Ordering::SeqCst), "point": point });
        if let (Value::Object(line), Value::Object(about)) = (&mut line, about) {
            line.extend(about.iter().map(|(name, value)| (name.clone(), value.clone())));
        }
        if lines.is_cut {
            line = json!({ "n": lines.number, "at": trace.order.load(Ordering::SeqCst), "point": "cut" });
        }
        let text = format!("{line}\n");
        lines.number += 1;
        lines.written += text.len() as u64;
        if let Err(error) = lines.file.write_all(text.as_bytes()) {
            lines.is_cut = true;
            tracing::error!(%error, "the trace cannot be written, it ends here");
        }
    }
}
