//! Values of a few gauges that this process reads itself, for the operators' picture of the pipeline.
//!
//! A gauge of the metrics crate can be set and not read. A phase sets both; a process without the phase has no value.

use std::sync::atomic::{AtomicU64, Ordering};

/// Whether the entry lets new purchases in: 1, or 0 while it is closed. `seckill_p1_entry_open`.
pub(crate) static ENTRY_OPEN: Reading = Reading::unset();
/// How far P4 is behind, seconds. `seckill_p1_entry_lag_seconds`.
pub(crate) static ENTRY_LAG_S: Reading = Reading::unset();
/// Whether the relay's breaker is open: 1 or 0. `seckill_p3_relay_breaker_open`.
pub(crate) static RELAY_BREAKER_OPEN: Reading = Reading::unset();
/// Whether the breaker of P4 is open: 1 or 0. `seckill_p4_persist_breaker_open`.
pub(crate) static PERSIST_BREAKER_OPEN: Reading = Reading::unset();

/// The last value of a gauge.
pub(crate) struct Reading(AtomicU64);

impl Reading {
    const fn unset() -> Self {
        Self(AtomicU64::new(f64::NAN.to_bits()))
    }

    /// Sets the gauge and the value that [`Reading::get`] returns.
    pub(crate) fn set(&self, gauge: &metrics::Gauge, value: f64) {
        gauge.set(value);
        self.0.store(value.to_bits(), Ordering::Relaxed);
    }

    /// The last value; `None` when none was set in this process.
    #[must_use]
    pub(crate) fn get(&self) -> Option<f64> {
        Some(f64::from_bits(self.0.load(Ordering::Relaxed))).filter(|value| !value.is_nan())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_absent_until_it_is_set() {
        let reading = Reading::unset();
        assert_eq!(reading.get(), None);
        reading.set(&metrics::Gauge::noop(), 0.5);
        assert_eq!(reading.get(), Some(0.5));
    }
}
