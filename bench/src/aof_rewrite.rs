//! Redis' append-only file between measurements.
//!
//! Redis rewrites it when it has doubled since the last time and is big (`auto-aof-rewrite-min-size`): a fork, and a
//! core for a second or two. A sale of some minutes meets that at most once, but a benchmark writes the file of many sales and
//! would have it in one run and not in the next. So it is done here, before a measurement and out of its figures.

use super::baseline::redis_info;
use super::environment::Environment;
use super::sizes::Spinner;
use seckill::cli::Failure;
use std::time::{Duration, Instant};

/// A larger file is rewritten; no measurement writes as much again before Redis does so by itself.
const BIG_BYTES: u64 = 128 << 20;
/// Longest wait for it.
const WITHIN: Duration = Duration::from_secs(60);
const CHECK_EVERY: Duration = Duration::from_millis(50);

/// Rewrites the file when it is big, and waits until no server is rewriting. Servers that were given, and those
/// of a stack that was there before, are left alone.
pub(super) async fn rewritten(environment: &Environment, spinner: &Spinner) -> Result<(), Failure> {
    if environment.role_processes().is_none() || !environment.pids().contains_key("redis") {
        return Ok(());
    }
    let redis = &environment.servers.redis;
    quiet(environment, spinner).await?;
    if redis_info::file_bytes(redis).await? <= BIG_BYTES {
        return Ok(());
    }
    // One that has begun by itself meanwhile refuses this one, and is as good.
    if let Err(fault) = redis_info::rewrite_file(redis).await
        && redis_info::file_rewrites_count(redis).await? == 0
    {
        return Err(fault.into());
    }
    quiet(environment, spinner).await
}

/// Waits until no server is rewriting its file.
async fn quiet(environment: &Environment, spinner: &Spinner) -> Result<(), Failure> {
    let end = Instant::now() + WITHIN;
    while redis_info::file_rewrites_count(&environment.servers.redis).await? > 0 {
        spinner.say("redis writes its file anew");
        environment.go_on()?;
        if Instant::now() > end {
            return Err(Failure::Failed(format!("redis has not written its file anew within {WITHIN:?}")));
        }
        environment.stop.sleep(CHECK_EVERY).await;
    }
    Ok(())
}
