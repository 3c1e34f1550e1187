//! The circuit breaker around an order queue of the broker (window 41): closed, open, half-open. It decides how much is sent to the broker,
//! never the outcome of an entry: an entry's own confirms, refusals and time-outs count in every state.
//!
//! Open: no connection, or no answer within the confirm time. Nothing but a canary is published; most entries are left
//! in the stream, unread. Half-open: the canary was confirmed, so the broker takes messages; a few entries are tried.
//! Closed: one of them was answered.
//!
//! Written by hand: the probe is a message with its own confirm, while breaker crates wrap a single call.

/// What this relay believes of the broker's side of an order queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum BrokerBreaker {
    /// The broker answers.
    Closed,
    /// It cannot be reached, or is silent.
    Open,
    /// It answered the canary.
    HalfOpen,
}

impl BrokerBreaker {
    /// The connection failed, or an answer did not come in time. `true`: the breaker was closed until now.
    pub(super) fn outage(&mut self, reason: &str) -> bool {
        let news = *self == Self::Closed;
        if news {
            tracing::warn!(phase = "p3_relay", reason, "breaker opens: the broker is away or silent");
        }
        *self = Self::Open;
        news
    }

    /// The canary was confirmed.
    pub(super) fn canary_confirmed(&mut self) {
        if *self == Self::Open {
            *self = Self::HalfOpen;
        }
    }

    /// The broker confirmed or refused an entry, or it confirmed the canary and there is no entry to probe with. `true`: this
    /// closes the breaker.
    pub(super) fn close(&mut self) -> bool {
        let closes = *self != Self::Closed;
        if closes {
            tracing::info!(phase = "p3_relay", "breaker closes: the broker answers");
            *self = Self::Closed;
        }
        closes
    }

    /// How many entries the relay may have: a whole window, or the few that probe.
    pub(super) fn entries_max(self, window_max: usize, probe_max: usize) -> usize {
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
        let mut breaker = BrokerBreaker::Closed;
        breaker.canary_confirmed();
        assert_eq!(
            (breaker, breaker.entries_max(512, 16)),
            (BrokerBreaker::Closed, 512),
            "a late canary means nothing"
        );
        assert!(breaker.outage("away") && !breaker.outage("still away"));
        assert_eq!((breaker, breaker.entries_max(512, 16), breaker.entries_max(4, 16)), (BrokerBreaker::Open, 16, 4));
        breaker.canary_confirmed();
        assert_eq!((breaker, breaker.entries_max(512, 16)), (BrokerBreaker::HalfOpen, 16));
        breaker.outage("silent again");
        assert_eq!(breaker, BrokerBreaker::Open, "half-open is not yet trust");
        breaker.canary_confirmed();
        assert!(breaker.close() && !breaker.close());
        assert_eq!(breaker, BrokerBreaker::Closed);
    }
}
