//! The guard: nothing is sold on a Redis whose settings break a promise at once, or any promise with
//! `redis.durability = "strict"` (windows 2, 13, 14, 15).
//!
//! Input: the server's settings, read at the start, every second, and before the boot fence lets a restarted server sell.
//! Output: a reason to refuse purchases, warnings, a gauge a setting. Keeps nothing; a crash here leaves nothing behind. A
//! setting changed while selling is noticed within a second or two: what was sold in between is as safe as that setting.

use crate::domain::fault::{Fault, Progress};
use crate::runtime::Worker;
use crate::store::redis::{RedisFault, RedisHealth, Setting, Weight};
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// Watches the settings. Clones share the findings.
#[derive(Clone)]
pub struct DurabilityGuard {
    health: RedisHealth,
    found: Arc<SettingFindings>,
}

#[derive(Default)]
struct SettingFindings {
    /// Whether `refusal` is set; read by every purchase.
    refuses: AtomicBool,
    refusal: Mutex<Option<String>>,
    /// Doubts that are in the log already, so that each is logged once and not every second.
    logged: Mutex<BTreeSet<String>>,
}

impl DurabilityGuard {
    /// For this Redis; refuses nothing before the first check.
    #[must_use]
    pub fn new(health: RedisHealth) -> Self {
        Self { health, found: Arc::default() }
    }

    /// Why nothing may be sold right now, if so.
    #[must_use]
    pub(crate) fn refusal(&self) -> Option<String> {
        if !self.found.refuses.load(Ordering::Acquire) {
            return None;
        }
        lock(&self.found.refusal).clone()
    }

    /// Reads the settings and judges them; returns why nothing may be sold, if so.
    /// When Redis does not answer, the findings of the last check stay.
    pub(crate) async fn check(&self) -> Result<Option<String>, RedisFault> {
        let (refusal, doubts) = match self.health.settings().await {
            Ok(settings) => judge(&settings),
            // Without the right to read them (ACL) the operator has to know; doctor reports the same.
            Err(RedisFault::Refused(error)) if error.starts_with("NOPERM") || error.contains("unknown command") => {
                let text =
                    format!("redis settings cannot be checked ({error}); permit CONFIG GET and INFO to this user");
                if self.health.is_strict() { (Some(text.clone()), vec![text]) } else { (None, vec![text]) }
            }
            Err(fault) => return Err(fault),
        };
        self.log(doubts);
        lock(&self.found.refusal).clone_from(&refusal);
        self.found.refuses.store(refusal.is_some(), Ordering::Release);
        Ok(refusal)
    }

    fn log(&self, doubts: Vec<String>) {
        let doubts: BTreeSet<String> = doubts.into_iter().collect();
        let mut logged = lock(&self.found.logged);
        for doubt in doubts.difference(&logged) {
            tracing::warn!(phase = "p2_reserve", "{doubt}");
        }
        for over in logged.difference(&doubts) {
            tracing::info!(phase = "p2_reserve", "no longer: {over}");
        }
        *logged = doubts;
    }
}

/// Why nothing may be sold, and all settings that are not as expected.
fn judge(settings: &[Setting]) -> (Option<String>, Vec<String>) {
    let mut doubts = Vec::new();
    for setting in settings {
        let unsafe_now = if setting.ok { 0.0 } else { 1.0 };
        metrics::gauge!("seckill_p2_reserve_unsafe_setting", "setting" => setting.name).set(unsafe_now);
        if !setting.ok {
            let what = match (setting.required, setting.weight) {
                (true, _) => "nothing is sold until it is changed",
                (false, Weight::Must | Weight::Promise) => "accepted requests can be lost",
                (false, Weight::Advice) => "not a danger, but dear",
            };
            doubts.push(format!("redis: {}: {}; {what}", setting.headline(), setting.why));
        }
    }
    let broken = settings.iter().find(|setting| setting.required && !setting.ok);
    (broken.map(|setting| format!("redis: {}: {}", setting.headline(), setting.why)), doubts)
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Worker for DurabilityGuard {
    fn name(&self) -> &'static str {
        "p2_reserve"
    }

    async fn step(&mut self) -> Result<Progress, Fault> {
        self.check().await.map_err(Fault::back_off)?;
        Ok(Progress::Idle)
    }
}
