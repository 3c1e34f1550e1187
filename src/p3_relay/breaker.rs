//! The circuit breaker around the broker (window 41): closed, open, half-open. It decides how much is asked of the broker,
//! never what becomes of an entry: an entry's own verdicts and time-outs count in every state.
//!
//! Open: no connection, or no answer within the confirm time. Nothing but a canary is published; most entries are left
//! in the stream, unread. Half-open: the canary was confirmed, so the broker takes messages; a few entries are tried.
//! Closed: one of them was answered.

/// What the broker is believed to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Breaker {
    /// It answers.
    Closed,
    /// It is away, or silent.
    Open,
    /// It answered the canary.
    HalfOpen,
}

impl Breaker {
    pub(super) fn new() -> Self {
        Self::Closed.tell();
        Self::Closed
    }

    /// Tells the gauge. Again and again, because the relays of a process share it.
    pub(super) fn tell(self) {
        let open = f64::from(u8::from(self != Self::Closed));
        crate::telemetry::RELAY_BREAKER_OPEN.set(&metrics::gauge!("seckill_p3_relay_breaker_open"), open);
    }

    /// The connection failed, or an answer stayed out. `true`: this is news.
    pub(super) fn outage(&mut self, reason: &str) -> bool {
        let news = *self == Self::Closed;
        if news {
            tracing::warn!(phase = "p3_relay", reason, "breaker opens: the broker is away or silent");
        }
        *self = Self::Open;
        self.tell();
        news
    }

    /// The canary was confirmed.
    pub(super) fn canary_confirmed(&mut self) {
        if *self == Self::Open {
            *self = Self::HalfOpen;
        }
    }

    /// The broker gave its verdict on an entry, whichever, or has confirmed the canary and there is no entry to probe with.
    /// `true`: it closes by this.
    pub(super) fn close(&mut self) -> bool {
        let closes = *self != Self::Closed;
        if closes {
            tracing::info!(phase = "p3_relay", "breaker closes: the broker answers");
            *self = Self::Closed;
            self.tell();
        }
        closes
    }

    /// How many entries the relay may hold, of a whole window or of the few that probe.
    pub(super) fn holds(self, window_max: usize, probe_max: usize) -> usize {
        match self {
            Self::Closed => window_max,
            Self::Open | Self::HalfOpen => probe_max.min(window_max),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_opens_with_an_outage_probes_after_the_canary_and_closes_with_a_verdict() {
        let mut breaker = Breaker::new();
        breaker.canary_confirmed();
        assert_eq!((breaker, breaker.holds(512, 16)), (Breaker::Closed, 512), "a late canary means nothing");
        assert!(breaker.outage("away") && !breaker.outage("still away"));
        assert_eq!((breaker, breaker.holds(512, 16), breaker.holds(4, 16)), (Breaker::Open, 16, 4));
        breaker.canary_confirmed();
        assert_eq!((breaker, breaker.holds(512, 16)), (Breaker::HalfOpen, 16));
        breaker.outage("silent again");
        assert_eq!(breaker, Breaker::Open, "half-open is not yet trust");
        breaker.canary_confirmed();
        assert!(breaker.close() && !breaker.close());
        assert_eq!(breaker, Breaker::Closed);
    }
}
