//! A run in memory as the files that the checker reads.

use super::sample_run::SampleRun;
use serde::Serialize;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

static FOLDERS: AtomicU32 = AtomicU32::new(0);

impl SampleRun {
    /// Writes all files into a new folder.
    pub fn write(&self) -> PathBuf {
        let name = format!("checker-{}-{}", std::process::id(), FOLDERS.fetch_add(1, Relaxed));
        let dir = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
        std::fs::create_dir_all(&dir).expect("a folder");
        let input = &self.input;
        put(&dir, "history", &input.attempts);
        put(&dir, "samples", &input.samples);
        put(&dir, "sales", &input.sales);
        put(&dir, "orders", &input.orders);
        put(&dir, "request_outcome", &input.outcomes);
        put(&dir, "failed_request", &input.failed);
        put(&dir, "purchases", &input.purchases);
        put(&dir, "drops", &input.drops);
        put(&dir, "drop_purchases", &input.drop_purchases);
        put(&dir, "payments", &input.payments);
        put(&dir, "stock_flow", &input.flow);
        put(&dir, "stock_grants", &input.grants);
        put(&dir, "redis_keys", &input.keys);
        put(&dir, "redis_meta", &input.meta);
        put(&dir, "redis_stock", &input.stock);
        put(&dir, "redis_ledger", &input.ledger);
        put(&dir, "redis_grants", &input.redis_grants);
        put(&dir, "redis_transfers", &input.transfers);
        put(&dir, "redis_outbox", &input.outbox);
        put(&dir, "redis_relay_dlq", &input.relay_dlq);
        put(&dir, "rabbit", &input.rabbit);
        put(&dir, "published", &input.published);
        put(&dir, "announced", &input.announced);
        put(&dir, "audit_findings", &input.findings);
        put(&dir, "operators", &input.acts);
        if let Some(received) = &input.received {
            put(&dir, "received", received);
        }
        let drain = serde_json::json!({ "drain_ms": 0, "destroyed": input.destroyed }).to_string();
        std::fs::write(dir.join("drain.json"), drain).expect("a file");
        dir
    }
}

fn put<T: Serialize>(dir: &Path, name: &str, values: &[T]) {
    let lines: String = values.iter().map(|value| serde_json::to_string(value).expect("json") + "\n").collect();
    std::fs::write(dir.join(format!("{name}.jsonl")), lines).expect("a file");
}
