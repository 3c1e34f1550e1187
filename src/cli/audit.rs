//! `seckill audit`: is anything lost, doubled or oversold? Exit code 0: everything adds up, 2: it does not.

use super::failure::{Failure, INCONSISTENT};
use super::{context, output};
use crate::config::Layers;
use crate::domain::ids::SaleId;
use crate::domain::sale::Sale;
use crate::p5_reconcile::{
    AuditOptions, ReconcileContext, SaleAudit, Suspect, Window, audit_sale, gap_suspects, unknown_sales,
};
use crate::roles::Servers;
use indicatif::ProgressBar;
use std::path::Path;
use std::time::{Duration, Instant};

/// Buyers named one by one; `--json` has them all.
const SUSPECTS_SHOWN_MAX: usize = 20;
/// Between two lines that say what an audit does.
const WORDS_EVERY: Duration = Duration::from_secs(3);
/// Longest audit of one sale: a sale of ten million orders takes a minute or two.
const AUDIT_MAX: Duration = Duration::from_secs(600);

#[derive(Debug, clap::Args)]
pub(super) struct AuditArgs {
    /// Only this sale; all but drafts when left out
    #[arg(long)]
    sale: Option<SaleId>,
    /// Take every undecided request as lost, however young (run it when nothing is on its way)
    #[arg(long)]
    now: bool,
    #[arg(long)]
    json: bool,
}

pub(super) async fn run(layers: &Layers, data_dir: &Path, args: &AuditArgs) -> Result<u8, Failure> {
    let settings = context::settings(layers, data_dir)?;
    let servers = context::servers(&settings).await?;
    let sales = wanted(&servers, args.sale.as_ref()).await?;
    let window = if args.now { Window::Now } else { Window::Ms(settings.p5_reconcile.window_ms) };
    let context = servers.reconcile_context(&settings);
    let waiting = WaitingPerson { progress: ProgressBar::new(sales.len() as u64), says_so: !args.json };
    let mut audits = Vec::with_capacity(sales.len());
    for sale in &sales {
        audits.push(waiting.audited(&context, sale, window).await?);
        waiting.progress.inc(1);
    }
    // Last: until then a sale may become known.
    if args.sale.is_none() {
        audits.extend(unknown_sales(&context).await?);
    }
    waiting.progress.finish_and_clear();
    let mut suspects = Vec::new();
    for audit in &audits {
        suspects.push(gap_suspects(&context, audit).await?);
    }
    servers.redis.quit().await;
    let consistent = audits.iter().all(SaleAudit::consistent);
    if args.json {
        let named = audits.iter().zip(&suspects).map(|(audit, suspects)| {
            let mut of_sale = serde_json::to_value(audit).unwrap_or_default();
            of_sale["consistent"] = audit.consistent().into();
            of_sale["suspects"] = serde_json::to_value(suspects).unwrap_or_default();
            of_sale
        });
        output::json(&serde_json::json!({ "consistent": consistent, "sales": named.collect::<Vec<_>>() }));
    } else {
        print(&audits, &suspects, consistent);
    }
    Ok(if consistent { 0 } else { INCONSISTENT })
}

/// What a person sees on stderr while an audit lasts; programs that read the JSON see nothing.
struct WaitingPerson {
    progress: ProgressBar,
    says_so: bool,
}

impl WaitingPerson {
    /// Audits one sale, and says every few seconds what it does. It ends in any case.
    async fn audited(&self, context: &ReconcileContext, sale: &Sale, window: Window) -> Result<SaleAudit, Failure> {
        let begun = Instant::now();
        let audit = audit_sale(context, sale, AuditOptions::from(window).confirmed());
        tokio::pin!(audit);
        let mut words = tokio::time::interval_at((begun + WORDS_EVERY).into(), WORDS_EVERY);
        loop {
            tokio::select! {
                done = &mut audit => return Ok(done?),
                _ = words.tick() => {}
            }
            let (stage, seconds) = (*context.stage.borrow(), begun.elapsed().as_secs());
            if begun.elapsed() > AUDIT_MAX {
                return Err(Failure::Failed(format!(
                    "the audit of sale {} was given up after {seconds} s ({stage}); run it again when less is on its way",
                    sale.sale_id
                )));
            }
            if self.says_so {
                self.progress.suspend(|| output::remark(&format!("sale {}, {seconds} s: {stage}", sale.sale_id)));
            }
        }
    }
}

async fn wanted(servers: &Servers, only: Option<&SaleId>) -> Result<Vec<Sale>, Failure> {
    match only {
        Some(id) => {
            let none = || Failure::Failed(format!("there is no sale {id}; see seckill sale list"));
            let sale = servers.rows.sales.get(id).await?;
            if let Some(kept) = servers.rows.archived.get(id).await? {
                let half = if sale.is_some() { "is being removed" } else { "was archived" };
                let manifest = kept.manifest;
                return Err(Failure::Failed(format!(
                    "sale {id} {half}; see seckill sale show {id}, its rows are in the export whose manifest.json has the SHA-256 {manifest}"
                )));
            }
            Ok(vec![sale.ok_or_else(none)?])
        }
        None => Ok(servers.rows.sales.released().await?),
    }
}

fn print(audits: &[SaleAudit], suspects: &[Vec<Suspect>], consistent: bool) {
    output::table(
        [
            "sale",
            "granted",
            "withdrawn",
            "redis left",
            "accepted",
            "ordered",
            "failed",
            "in flight",
            "parked",
            "lost",
            "gaps",
            "held",
            "to give",
            "db stock",
            "",
        ],
        audits.iter().map(row),
    );
    for (audit, suspects) in audits.iter().zip(suspects) {
        for finding in &audit.findings {
            let request = finding.request_id.map_or_else(String::new, |id| format!(" request {id}:"));
            output::line(&format!("{} {}:{request} {}", audit.sale_id, finding.kind.code(), finding.detail));
        }
        if audit.findings_left_out_count > 0 {
            output::line(&format!("{}: {} findings more", audit.sale_id, audit.findings_left_out_count));
        }
        for suspect in suspects.iter().take(SUSPECTS_SHOWN_MAX) {
            output::line(&format!(
                "{} P5-RC4: it can be request {} of {} ({} units), whom redis remembers and the database does not",
                audit.sale_id, suspect.request_id, suspect.user_id, suspect.units
            ));
        }
        if suspects.len() > SUSPECTS_SHOWN_MAX {
            output::line(&format!(
                "{}: {} buyers more, see --json",
                audit.sale_id,
                suspects.len() - SUSPECTS_SHOWN_MAX
            ));
        }
    }
    let parked: i64 = audits.iter().map(|audit| audit.counted.parked).sum();
    output::line(&match (consistent, parked) {
        (true, 0) => "consistent: every accepted unit is an order, a recorded failure, or on its way".to_owned(),
        (true, parked) => format!(
            "consistent: every accepted unit is an order, a recorded failure, or on its way; of these are parked, and wait for an \
             operator: {parked} (seckill dlq list)"
        ),
        (false, _) => "INCONSISTENT: see the findings above and docs/operations.md".to_owned(),
    });
}

fn row(audit: &SaleAudit) -> [String; 15] {
    let counted = audit.counted;
    let verdict = match (audit.consistent(), counted.correction) {
        (true, 0) => "ok".to_owned(),
        // Without the word the row would not add up to the eye.
        (true, units) => format!("ok, with a correction of {units}"),
        (false, _) => "INCONSISTENT".to_owned(),
    };
    let units = [
        counted.granted,
        counted.withdrawn,
        counted.redis_stock + counted.in_transit,
        counted.accepted,
        counted.ordered,
        counted.accepted_failed,
        counted.in_flight,
        counted.parked,
        counted.leaked,
        counted.gaps_held,
        counted.failed_held,
        counted.grants_open,
        counted.database_stock,
    ];
    let [granted, withdrawn, left, accepted, ordered, failed, flight, parked, lost, gaps, held, to_give, stock] =
        units.map(|units| units.to_string());
    let sale = audit.sale_id.to_string();
    [
        sale, granted, withdrawn, left, accepted, ordered, failed, flight, parked, lost, gaps, held, to_give, stock,
        verdict,
    ]
}
