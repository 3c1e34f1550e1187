//! `seckill sale edit`, `reschedule`, `hide`, `publish` and `clone`: changes of a sale that exists, on record.

use super::SaleOperator;
use crate::cli::failure::Failure;
use crate::cli::output;
use crate::domain::ids::SaleId;
use crate::domain::instant::instant;
use crate::domain::new_sale::BadSale;
use crate::domain::operator::Operation;
use crate::domain::sale_change::{ChangeRefusal, NewTimes, SaleChange, SaleEdit};
use crate::domain::sale_clone::CloneForm;
use crate::sales::SaleControlError;
use chrono::{DateTime, Utc};
use serde_json::json;

/// `seckill sale edit`; what is left out stays as it is.
#[derive(Debug, Clone, clap::Args)]
pub(in crate::cli) struct SaleEditArgs {
    id: SaleId,
    /// What is sold
    #[arg(long)]
    product: Option<String>,
    /// What a buyer reads
    #[arg(long)]
    title: Option<String>,
    /// Price of one unit in the currency's smallest unit; from 1 where there is a payment step
    #[arg(long, allow_negative_numbers = true)]
    price_cents: Option<i64>,
    /// ISO 4217 code
    #[arg(long)]
    currency: Option<String>,
    /// Most units a buyer may have, or none
    #[arg(long, value_name = "UNITS|none", value_parser = number_or_none)]
    limit: Option<Maybe>,
    /// Whether buyers need a purchase token
    #[arg(long, value_name = "true|false")]
    token_required: Option<bool>,
    /// Whether buyers pass a waiting room
    #[arg(long, value_name = "true|false")]
    waiting_room: Option<bool>,
    /// Seconds that a buyer has to pay, or none for no payment step
    #[arg(long, value_name = "SECONDS|none", value_parser = number_or_none)]
    pay_within_s: Option<Maybe>,
    /// Seconds between the deadline that buyers see and the one that is enforced
    #[arg(long, value_name = "SECONDS")]
    pay_grace_s: Option<u32>,
    /// Whether an order that ends unpaid no longer counts against its buyer's limit
    #[arg(long, value_name = "true|false")]
    limit_returns: Option<bool>,
    /// The version that you saw (sale show): with another one nothing is changed
    #[arg(long)]
    version: Option<u32>,
}

/// A number, or the word none.
#[derive(Debug, Clone, Copy)]
struct Maybe(Option<u32>);

fn number_or_none(text: &str) -> Result<Maybe, String> {
    if text == "none" {
        return Ok(Maybe(None));
    }
    text.parse().map(|number| Maybe(Some(number))).map_err(|_| "expected a whole number or none".to_owned())
}

/// `seckill sale reschedule`; what is left out stays as it is.
#[derive(Debug, Clone, clap::Args)]
pub(in crate::cli) struct RescheduleArgs {
    id: SaleId,
    /// New start, RFC 3339: until 30 seconds before the old one, and at least 30 seconds from now
    #[arg(long, value_parser = instant, required_unless_present = "ends_at")]
    starts_at: Option<DateTime<Utc>>,
    /// New end, RFC 3339: until the old one has passed, and in the future
    #[arg(long, value_parser = instant)]
    ends_at: Option<DateTime<Utc>>,
    /// The version that you saw (sale show): with another one nothing is changed
    #[arg(long)]
    version: Option<u32>,
}

/// `seckill sale clone`
#[derive(Debug, Clone, clap::Args)]
pub(in crate::cli) struct CloneArgs {
    /// The sale whose terms are taken
    of: SaleId,
    /// Id of the new sale
    #[arg(long)]
    id: SaleId,
    /// Start, RFC 3339
    #[arg(long, value_parser = instant)]
    starts_at: DateTime<Utc>,
    /// End, RFC 3339, after the start
    #[arg(long, value_parser = instant)]
    ends_at: DateTime<Utc>,
    /// Units; left out: as many as the other sale was ever granted
    #[arg(long, allow_negative_numbers = true)]
    stock: Option<i64>,
    /// Buyers do not see it until it is published
    #[arg(long)]
    hidden: bool,
}

/// A value that no sale may have is a mistake of the call, everything else an answer of the system.
fn failure(error: SaleControlError) -> Failure {
    let SaleControlError::Refused(ChangeRefusal::Value(bad)) = error else { return error.into() };
    let BadSale { field, expected, .. } = bad;
    Failure::Usage(match field {
        "body" => format!("nothing to change: expected {expected}"),
        field => format!("--{}: expected {expected}", field.replace('_', "-")),
    })
}

impl SaleOperator {
    pub(super) async fn edit(&self, args: SaleEditArgs) -> Result<(), Failure> {
        let (id, version) = (args.id.clone(), args.version);
        let edit = SaleEdit {
            product: args.product,
            title: args.title,
            price_cents: args.price_cents,
            currency: args.currency,
            limit: args.limit.map(|Maybe(limit)| limit),
            token_required: args.token_required,
            waiting_room: args.waiting_room,
            pay_within_s: args.pay_within_s.map(|Maybe(seconds)| seconds),
            pay_grace_s: args.pay_grace_s,
            limit_returns: args.limit_returns,
        };
        let (asked, change) = (json!(edit), SaleChange::Edit(edit));
        self.record(Operation::SaleEdit, &id, asked, self.control.change(&id, &change, version))
            .await
            .map_err(failure)?;
        output::line(&format!("edited {id}"));
        Ok(())
    }

    pub(super) async fn reschedule(&self, args: RescheduleArgs) -> Result<(), Failure> {
        let RescheduleArgs { id, starts_at, ends_at, version } = args;
        let asked = json!({ "starts_at": starts_at, "ends_at": ends_at });
        let change = SaleChange::Reschedule(NewTimes { starts_at, ends_at });
        self.record(Operation::SaleReschedule, &id, asked, self.control.change(&id, &change, version))
            .await
            .map_err(failure)?;
        output::line(&format!("rescheduled {id}"));
        Ok(())
    }

    pub(super) async fn hide(&self, id: &SaleId) -> Result<(), Failure> {
        self.change(Operation::SaleHide, id, self.control.change(id, &SaleChange::Hide, None)).await?;
        output::line(&format!("{id} is hidden: to buyers there is no such sale"));
        Ok(())
    }

    pub(super) async fn publish(&self, id: &SaleId) -> Result<(), Failure> {
        self.change(Operation::SalePublish, id, self.control.change(id, &SaleChange::Publish, None)).await?;
        output::line(&format!("published {id}"));
        Ok(())
    }

    pub(super) async fn clone_sale(&self, args: CloneArgs) -> Result<(), Failure> {
        let CloneArgs { of, id, starts_at, ends_at, stock, hidden } = args;
        let asked = json!({ "of": of, "stock": stock, "hidden": hidden });
        let form = CloneForm { id, starts_at, ends_at, stock, hidden };
        let cloning = self.control.clone_sale(&of, &form);
        let made = self.record(Operation::SaleClone, &form.id, asked, cloning).await.map_err(failure)?;
        output::line(&format!("created {} with {} units and the terms of {of}", made.sale_id, made.granted));
        super::remark_on_times(&made);
        Ok(())
    }
}
