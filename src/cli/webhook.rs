//! `seckill webhook …`: what waits for receivers of webhooks, what is dead, and its replay.

use super::failure::Failure;
use super::{context, output};
use crate::config::Layers;
use crate::events::webhooks::deliveries::{DeliveriesPage, DeliveryDocument, WebhookDocument, webhooks_overview};
use crate::events::webhooks::forms::{DeliveriesForm, ReplayForm};
use crate::roles::Servers;
use serde_json::json;
use std::path::Path;

/// Deliveries of a long replay between two remarks.
const PROGRESS: usize = 10_000;

/// `seckill webhook …`
#[derive(Debug, clap::Subcommand)]
pub(super) enum WebhookCommand {
    /// List the webhooks: what waits and what is dead; with --dead or --state the deliveries themselves
    #[command(after_help = "Examples:
  seckill webhook list
  seckill webhook list --dead --webhook shop")]
    List {
        /// Deliveries whose tries are spent
        #[arg(long, conflicts_with = "state")]
        dead: bool,
        #[command(flatten)]
        form: DeliveriesForm,
        #[arg(long)]
        json: bool,
    },
    /// Show one delivery with its event, as JSON
    Show {
        /// Number of the delivery
        id: u64,
    },
    /// Send deliveries again: at once, with all their tries, under the same webhook-id
    #[command(after_help = "Examples:
  seckill webhook replay 4711
  seckill webhook replay --dead --webhook shop")]
    Replay {
        #[command(flatten)]
        form: ReplayForm,
    },
}

pub(super) async fn run(layers: &Layers, data_dir: &Path, command: WebhookCommand) -> Result<u8, Failure> {
    // Redis and the broker are not needed.
    let settings = context::settings(layers, data_dir)?;
    let webhooks = Servers::new(&settings)?.rows.webhooks;
    match command {
        WebhookCommand::List { dead: false, form: DeliveriesForm { state: None, webhook, cursor, .. }, json } => {
            if webhook.is_some() {
                return Err(Failure::Usage("--webhook: only with --dead or --state".to_owned()));
            }
            if cursor.is_some() {
                return Err(Failure::Usage("--cursor: only with --dead or --state".to_owned()));
            }
            show_overview(&webhooks_overview(&webhooks, &settings.webhooks).await?, json);
            Ok(0)
        }
        WebhookCommand::List { dead: _, form, json } => {
            show_list(DeliveriesPage::read(&webhooks, &form.filter()?).await?, json);
            Ok(0)
        }
        WebhookCommand::Show { id } => {
            let row = webhooks.get(id).await?;
            let none = || {
                Failure::Failed(format!(
                    "there is no delivery {id}; delivered ones are deleted after webhook_delivery.retention_s"
                ))
            };
            output::json(&DeliveryDocument::with_data(row.ok_or_else(none)?));
            Ok(0)
        }
        WebhookCommand::Replay { form } => {
            let form = form.checked()?;
            let progress = |replayed: usize| {
                if replayed.is_multiple_of(PROGRESS) {
                    output::remark(&format!("{replayed} so far"));
                }
            };
            let done = form.replay(&webhooks, &context::operator(), &progress).await?;
            for webhook in &done.opened {
                output::line(&format!(
                    "{webhook} was closed because its receiver answered 410; it is open again, and what waits for it is sent, too"
                ));
            }
            output::line(&format!("{} deliveries are sent again", done.replayed));
            if done.unknown.is_empty() {
                return Ok(0);
            }
            let unknown: Vec<String> = done.unknown.iter().map(u64::to_string).collect();
            Err(Failure::Failed(format!("there is no delivery {}", unknown.join(", "))))
        }
    }
}

fn show_overview(found: &[WebhookDocument], json: bool) {
    if json {
        return output::json(&json!({ "webhooks": found }));
    }
    if found.is_empty() {
        return output::line("no webhook is configured");
    }
    output::table(
        ["webhook", "to", "events", "waiting", "oldest", "dead"],
        found.iter().map(|of| {
            let to = of.url.clone().unwrap_or_else(|| "not configured: kept, not sent".to_owned());
            let [waiting, dead] = [of.waiting, of.dead].map(|count| count.to_string());
            [of.name.clone(), to, of.events.join(" "), waiting, format!("{} s", of.oldest_s), dead]
        }),
    );
}

fn show_list(page: DeliveriesPage, json: bool) {
    if json {
        return output::json(&page);
    }
    let DeliveriesPage { deliveries, count, more_than_count, next } = page;
    if deliveries.is_empty() {
        return output::line("no such delivery");
    }
    let shown = deliveries.len();
    output::table(
        ["delivery", "webhook", "order or sale", "event", "tries", "happened", "next or since", "problem"],
        deliveries.into_iter().map(|of| {
            let problem = of.problem.unwrap_or_else(|| "-".to_owned());
            let subject = of.request_id.or(of.sale_id).unwrap_or_else(|| "-".to_owned());
            let [id, tries] = [of.delivery_id.to_string(), of.attempts.to_string()];
            [id, of.webhook, subject, of.r#type, tries, of.created_at, of.next_at, problem]
        }),
    );
    output::line(&format!("{shown} of {}{count}", if more_than_count { "more than " } else { "" }));
    output::more("cursor", next);
}
