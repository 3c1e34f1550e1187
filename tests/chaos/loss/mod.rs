//! Chaos in which data go back or vanish: Redis, the database and the broker lose what they had, and the product's audit is
//! judged against the independent checker ([`crate::checker::loss`]).
//!
//! A run is a row of waves on one deployment. In a wave some sales stand side by side, and each meets a fault of its own; or a
//! whole server meets one. Red: the audit calls a sale consistent in which the checker finds something, or the reverse; or both
//! say that something is wrong, and not the same. The controls are part of each run: an audit that leaves out the bridge, and a
//! wave in which nothing reads acceptance numbers, have to miss something.
//!
//! The outbox is a stream here: a fault takes single entries out of it. `CHAOS_SEED` repeats what was drawn,
//! `CHAOS_LOSS_FAULTS` says how many faults have to hit at least, `CHAOS_SET` changes settings.

mod comparison;
mod crowd;
mod cures;
mod damage;
mod damage_run;
mod faults;
mod mysql;
mod plan;
mod quiescence;
mod redis;
mod report;
mod testbed;
mod wave;

use crate::{FIXED_SEEDS, asked, given_settings, seeds, time};
use report::LossReport;
use seckill::faults::Mechanism;
use std::time::Instant;
use testbed::Testbed;

/// Faults that hit, at least, when nothing else is asked for: one wave of sales.
const FEW: usize = 20;

#[test]
fn data_that_go_back_or_vanish_are_never_called_consistent() {
    time::run_waiting(async {
        let (seed, asked_for) = (seeds(&[FIXED_SEEDS[0]])[0], asked("CHAOS_LOSS_FAULTS").unwrap_or(FEW));
        eprintln!("chaos with data loss: seed {seed}, {asked_for} faults or more");
        let begun = Instant::now();
        let testbed = Testbed::start(&given_settings()).await;
        let (mut plan, mut waves, mut hit) = (plan::Waves::of(seed), Vec::new(), 0);
        while hit < asked_for {
            let (wave, of_wave) = (plan.draw(), Instant::now());
            let judged = wave::play(&testbed, &wave, None).await;
            eprintln!("wave {}: {} faults hit in {} ms", wave.number, judged.hit(), of_wave.elapsed().as_millis());
            report::complaints_of(&judged).iter().for_each(|complaint| eprintln!("{complaint}"));
            hit += judged.hit();
            waves.push(judged);
        }
        testbed.leave_out(Mechanism::NumberEquation).await;
        let blind = wave::play(&testbed, &plan::of_numbers(seed), Some(Mechanism::NumberEquation)).await;
        let report = LossReport { seed, asked: asked_for, waves, blind, took_s: begun.elapsed().as_secs() };
        eprintln!("{}\nreport: {}", report.summary(), report.write().display());
        let complaints = report.complaints();
        assert!(complaints.is_empty(), "{}\nreplay with: {}", complaints.join("\n"), report.command());
        testbed.deployment.finish().await;
    });
}
