//! Places where a test build can be killed, and mechanisms it can leave out.
//!
//! Both are there to prove the tests: a crash point shows what a death at exactly this line leaves behind; a mechanism that
//! is switched off must make the chaos harness find a loss, else the harness proves nothing.
//!
//! Only with the feature `faults`, which the quick profile of `make run` and `make test` has; a build without debug assertions
//! (release, dist, the image) with it is refused below. Without the feature every call here is an empty inline function. Armed by the environment of a process, never by configuration, in the grammar of the `fail` crate:
//! `FAILPOINTS="F7=5*off->return;mandatory=return"` kills the process at its sixth pass through F7 and publishes without
//! `mandatory`. Actions: `return` (die, or switched off), `off`, `sleep(ms)`, `panic`; `n*` limits how often.
//! `next_version=return` has the process write the envelope of a version that is not there yet, and read both, for tests of two
//! versions side by side; `slow_audit=return(ms)` makes an audit take its time. A [`Hold`] is a place where a process waits.

#[cfg(all(feature = "faults", not(debug_assertions)))]
compile_error!(
    "the feature `faults` (crash points, mechanisms that can be switched off) is for the quick profile only; build a release without it"
);

/// Names an enum's variants by the codes they have in `FAILPOINTS`, in reports and in `docs/proof.md`.
macro_rules! coded {
    ($(#[$doc:meta])* $name:ident { $($(#[$variant_doc:meta])* $variant:ident = $code:literal,)* }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum $name { $($(#[$variant_doc])* $variant,)* }

        impl $name {
            /// All of them, in the order of a request's way.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];

            /// The name it is armed by.
            #[must_use]
            pub const fn code(self) -> &'static str {
                match self { $(Self::$variant => $code,)* }
            }
        }
    };
}

mod crash_points;
mod mechanisms;

pub use crash_points::CrashPoint;
pub use mechanisms::Mechanism;

#[cfg(feature = "faults")]
mod in_process;
#[cfg(feature = "faults")]
pub use in_process::{Armed, held_count};

/// A line at which an armed process dies; nothing elsewhere. `crash_point!(AfterConfirm);`
macro_rules! crash_point {
    ($point:ident) => {
        $crate::faults::CrashPoint::$point.reach()
    };
}

/// A place where an armed process waits; nothing elsewhere. `hold!(GiverRead);`
macro_rules! hold {
    ($hold:ident) => {
        $crate::faults::Hold::$hold.wait().await
    };
}

/// Whether this process is to leave a mechanism out; `false` without the feature `faults`. `if left_out!(Ledger) { … }`
macro_rules! left_out {
    ($mechanism:ident) => {
        $crate::faults::Mechanism::$mechanism.is_off()
    };
}

pub(crate) use {crash_point, hold, left_out};

coded! {
    /// A place where a process can be held, by `return(hold)`, until it is not armed any more. `return(pass)` lets others
    /// pass meanwhile.
    Hold {
        /// A giver has read the list of grants, and gives none yet.
        GiverRead = "giver_read",
        /// A rebuild has judged a sale, and has no epoch yet.
        LeaderJudged = "leader_judged",
        /// A rebuild has its epoch and has judged its keys; it replaces none yet.
        LeaderNumbered = "leader_numbered",
        /// A rebuild has loaded the records; it has not counted the units yet.
        LeaderLoaded = "leader_loaded",
        /// A rebuild has counted the units; it marks no grant yet.
        LeaderCounted = "leader_counted",
        /// A rebuild has marked the grants; it opens the sale next.
        LeaderMarked = "leader_marked",
        /// A consumer has acknowledged what is decided of a group; it sends the rest back next.
        OrdersAcked = "orders_acked",
        /// A consumer has committed a group; it publishes the events of it next.
        GroupCommitted = "group_committed",
        /// A publisher has read events that wait; it publishes them next.
        EventsRead = "events_read",
        /// An audit has counted Redis; it reads the database next.
        AuditCounted = "audit_counted",
        /// An order is paid and its payment has no row, which happens only without `PaidWithItsRow`.
        OrderPaid = "order_paid",
    }
}

/// What a [`Hold`] is armed with.
#[cfg(feature = "faults")]
const HOLDS: &str = "hold";

impl CrashPoint {
    /// Dies here, if armed; written as [`crash_point!`].
    #[inline]
    pub(crate) fn reach(self) {
        #[cfg(feature = "faults")]
        if armed::hit(self.code()) {
            armed::die(self.code());
        }
    }
}

impl Mechanism {
    /// Whether this process is to leave it out; written as [`left_out!`].
    #[inline]
    #[must_use]
    pub(crate) fn is_off(self) -> bool {
        #[cfg(feature = "faults")]
        return armed::hit(self.code());
        #[cfg(not(feature = "faults"))]
        false
    }
}

impl Hold {
    /// Waits here, if armed; written as [`hold!`].
    #[inline]
    #[cfg_attr(not(feature = "faults"), allow(clippy::unused_async, reason = "an empty function without the feature"))]
    pub(crate) async fn wait(self) {
        #[cfg(feature = "faults")]
        if armed::text(self.code()).as_deref() == Some(HOLDS) {
            let _held = in_process::Held::new();
            while armed::text(self.code()).is_some() {
                tokio::time::sleep(std::time::Duration::from_millis(10)).await;
            }
        }
    }
}

#[cfg(feature = "faults")]
mod stepwise;
#[cfg(feature = "faults")]
pub(crate) use stepwise::between_steps;
#[cfg(feature = "faults")]
pub use stepwise::{Stepped, Stepwise};

/// A place between two steps of the protocol's model; nothing happens here.
#[cfg(not(feature = "faults"))]
#[inline]
#[allow(clippy::unused_async, reason = "an empty function without the feature")]
pub(crate) async fn between_steps(_: &'static str) {}

/// Makes an audit last longer, as one of millions of records does: `FAILPOINTS="slow_audit=1*return(20000)"` the first by 20 s.
/// The process goes on meanwhile; `sleep` would stop a thread of it.
#[inline]
pub(crate) async fn slow_audit() {
    #[cfg(feature = "faults")]
    if let Some(ms) = armed::value("slow_audit") {
        tokio::time::sleep(std::time::Duration::from_millis(ms)).await;
    }
}

/// Reads `FAILPOINTS`; called once, at the start of the process.
pub(crate) fn arm() {
    #[cfg(feature = "faults")]
    armed::read();
}

#[cfg(feature = "faults")]
mod armed {
    /// Whether the point's `return` action fired.
    pub(super) fn hit(name: &str) -> bool {
        fail::eval(name, |_| ()).is_some()
    }

    /// The number that the point's `return` action was given, if it fired.
    pub(super) fn value(name: &str) -> Option<u64> {
        fail::eval(name, |text| text.and_then(|text| text.parse().ok())).flatten()
    }

    /// The text that the point's `return` action was given, if it fired.
    pub(super) fn text(name: &str) -> Option<String> {
        fail::eval(name, |text| text.unwrap_or_default())
    }

    pub(super) fn die(name: &str) -> ! {
        tracing::error!(point = name, "dying at a crash point, as asked");
        // A test reads that line; what dies here is everything else.
        crate::telemetry::last_words(None);
        // SAFETY: getpid and kill have no preconditions. SIGKILL: no destructor, no flush, as a power cut would.
        unsafe { libc::kill(libc::getpid(), libc::SIGKILL) };
        loop {
            std::thread::park();
        }
    }

    pub(super) fn read() {
        // The scenario ends with the process.
        std::mem::forget(fail::FailScenario::setup());
        let armed = fail::list();
        if !armed.is_empty() {
            tracing::warn!(?armed, "fault points are armed");
        }
        if hit("next_version") {
            crate::domain::message::play_next_version();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_unique() {
        let codes = CrashPoint::ALL.iter().map(|p| p.code()).chain(Mechanism::ALL.iter().map(|m| m.code()));
        let codes = codes.chain(Hold::ALL.iter().map(|hold| hold.code()));
        let codes: Vec<&str> = codes.collect();
        let unique: std::collections::HashSet<&str> = codes.iter().copied().collect();
        assert_eq!(unique.len(), codes.len(), "{codes:?}");
    }
}
