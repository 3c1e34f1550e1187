//! `seckill audit`: is anything lost, doubled or oversold? Exit code 0: everything adds up, 2: it does not.

use super::{Failure, INCONSISTENT, context, output};
use crate::config::Layers;
use crate::domain::ids::SaleId;
use crate::domain::sale::Sale;
use crate::p5_reconcile::{SaleAudit, Window};
use crate::roles::Servers;
use crate::store::mysql::sales;
use indicatif::ProgressBar;
use std::path::Path;

/// `seckill audit`
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Only this sale; all but drafts when left out
    #[arg(long)]
    sale: Option<SaleId>,
    /// Take every undecided request as lost, however young (run it when nothing is on its way)
    #[arg(long)]
    now: bool,
    /// As JSON
    #[arg(long)]
    json: bool,
}

pub(super) async fn run(layers: &Layers, data_dir: &Path, args: &Args) -> Result<u8, Failure> {
    let settings = context::settings(layers, data_dir)?;
    let servers = context::servers(&settings).await?;
    let sales = wanted(&servers, args.sale.as_ref()).await?;
    let window = if args.now { Window::Now } else { Window::Ms(settings.p5_reconcile.window_ms) };
    let auditor = context::auditor(&settings, &servers);
    let progress = ProgressBar::new(sales.len() as u64);
    let mut audits = Vec::with_capacity(sales.len());
    for sale in &sales {
        audits.push(auditor.audit(sale, window).await?);
        progress.inc(1);
    }
    progress.finish_and_clear();
    servers.redis.quit().await;
    let consistent = audits.iter().all(SaleAudit::consistent);
    if args.json {
        output::json(&serde_json::json!({ "consistent": consistent, "sales": audits }));
    } else {
        print(&audits, consistent);
    }
    Ok(if consistent { 0 } else { INCONSISTENT })
}

async fn wanted(servers: &Servers, only: Option<&SaleId>) -> Result<Vec<Sale>, Failure> {
    match only {
        Some(id) => {
            let none = || Failure::Failed(format!("there is no sale {id}; see seckill sale list"));
            Ok(vec![sales::get(&servers.db, id).await?.ok_or_else(none)?])
        }
        None => Ok(sales::released(&servers.db).await?),
    }
}

fn print(audits: &[SaleAudit], consistent: bool) {
    output::table(
        [
            "sale",
            "granted",
            "redis left",
            "accepted",
            "ordered",
            "failed",
            "in flight",
            "parked",
            "lost",
            "db stock",
            "",
        ],
        audits.iter().map(|audit| {
            let counted = audit.counted;
            let units = |units: i64| units.to_string();
            [
                audit.sale_id.to_string(),
                units(counted.granted),
                units(counted.redis_stock + counted.in_transit),
                units(counted.accepted),
                units(counted.ordered),
                units(counted.accepted_failed),
                units(counted.in_flight),
                units(counted.parked),
                units(counted.leaked),
                units(counted.database_stock),
                if audit.consistent() { "ok" } else { "INCONSISTENT" }.to_owned(),
            ]
        }),
    );
    for audit in audits {
        for finding in &audit.findings {
            let request = finding.request_id.map_or_else(String::new, |id| format!(" request {id}:"));
            output::line(&format!("{} {}:{request} {}", audit.sale_id, finding.kind.code(), finding.detail));
        }
        if audit.findings_left_out_count > 0 {
            output::line(&format!("{}: {} findings more", audit.sale_id, audit.findings_left_out_count));
        }
    }
    output::line(if consistent {
        "consistent: every accepted unit is an order, a recorded failure, or on its way"
    } else {
        "INCONSISTENT: see the findings above and docs/operations.md"
    });
}
