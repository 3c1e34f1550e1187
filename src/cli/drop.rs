//! `seckill drop …`: creates, shows and steers drops, sales that belong together.

use crate::cli::failure::Failure;
use crate::cli::sale::archive;
use crate::cli::sale::operator::{may_repeat, named};
use crate::cli::sale::show::{needs, release};
use crate::cli::sale::{some_units, withdrawal_name};
use crate::cli::{context, input, output};
use crate::config::Layers;
use crate::domain::drops::SalesDrop;
use crate::domain::ids::{DropId, SaleId};
use crate::domain::policy::LimitBy;
use crate::domain::sale::Sale;
use crate::domain::timetable::Timetable;
use crate::http::times::shown_time;
use crate::sales::forms::{DropEditForm, MoveForm, NewDropForm, shown_releases};
use crate::sales::rows::timetable::KnownTimetable;
use crate::sales::{DropCreated, DropVerb, SaleControl};
use serde_json::json;
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};

/// Largest file of a drop, bytes; 64 sales with long titles are 60,000.
const FILE_BYTES_MAX: u64 = 1_000_000;

/// `seckill drop …`
#[derive(Debug, clap::Subcommand)]
pub(super) enum DropCommand {
    /// Create a drop and its sales as drafts, all or nothing; safe to repeat with the same file
    ///
    /// The file is JSON: drop_id, title, limit (most units of one buyer over all sales, null for none), limit_by (account or person) and sales, 1 to 64, each with the
    /// fields of `POST /admin/v1/sales`; of these `releases` are units that come later, [{"at": TIME, "units": N}]. A sale may also say
    /// `rollover_to`, the sale of the drop that gets what is unsold at its end.
    #[command(after_help = "Example:
  {\"drop_id\": \"sneaker\", \"title\": \"Sneaker 26\", \"limit\": 1, \"sales\": [
    {\"sale_id\": \"sneaker-41\", \"product_id\": \"sneaker-41\", \"title\": \"EU 41\", \"stock\": 96, \"price_cents\": 19900,
     \"starts_at\": \"2027-03-01T10:00:00+01:00\", \"ends_at\": \"2027-03-01T12:00:00+01:00\"},
    {\"sale_id\": \"sneaker-42\", \"product_id\": \"sneaker-42\", \"title\": \"EU 42\", \"stock\": 120, \"price_cents\": 19900,
     \"starts_at\": \"2027-03-01T10:00:00+01:00\", \"ends_at\": \"2027-03-01T12:00:00+01:00\"}]}")]
    Create {
        /// The file; - is standard input
        #[arg(long, value_name = "FILE")]
        file: PathBuf,
        /// Put the stock of all its sales into Redis at once
        #[arg(long)]
        warm: bool,
    },
    /// List the newest drops
    List {
        #[arg(long)]
        json: bool,
    },
    /// Show a drop with its sales; as JSON it is a file for `drop create`, but for its field `progress`
    Show {
        id: DropId,
        #[arg(long)]
        json: bool,
    },
    /// Change its title or its limit, until 30 seconds before the first of its sales starts
    Edit {
        id: DropId,
        #[command(flatten)]
        form: DropEditForm,
    },
    /// Put the stock of all its sales into Redis and open them (their windows still decide when they sell); safe to repeat
    Warm { id: DropId },
    /// Stop selling; can be resumed
    Pause { id: DropId },
    /// Go on selling after a pause
    Resume { id: DropId },
    /// Hide all its sales from buyers; not while they sell, pause the drop first
    Hide { id: DropId },
    /// Show its hidden sales to buyers
    Publish { id: DropId },
    /// Move unsold units from one of its sales to another
    ///
    /// Fewer than UNITS move when fewer are unsold, or when buyers are quicker; the answer says how many did.
    Move {
        from: SaleId,
        to: SaleId,
        #[arg(value_parser = some_units, allow_negative_numbers = true)]
        units: u32,
        /// Name of this move; repeating a call with the same name moves nothing more. Left out: made up, and printed before it acts
        #[arg(long, value_name = "NAME", value_parser = withdrawal_name)]
        name: Option<String>,
    },
    /// End all its sales for good; what was accepted still lands
    Close { id: DropId },
    /// Export its closed sales into files, and remove them from the database; safe to repeat
    ///
    /// As `sale archive` does for each of its sales, in their order. The drop stays, and so does its name.
    Archive {
        id: DropId,
        /// Folder in which each sale gets a folder of its name
        #[arg(long, value_name = "DIR")]
        to: PathBuf,
        /// Compare the exports with the database once more, then remove the rows; what is kept is one row of sums a sale, and payments
        #[arg(long)]
        remove: bool,
    },
}

/// What a command comes to, once its file is read.
enum DropWork {
    Create { drop: SalesDrop, sales: Vec<(Sale, Timetable)>, warm: bool },
    List { json: bool },
    Show { id: DropId, json: bool },
    Edit { id: DropId, form: DropEditForm },
    Each { id: DropId, verb: DropVerb, done: &'static str },
    Move(MoveForm),
    Close(DropId),
    Archive { id: DropId, to: PathBuf, remove: bool },
}

impl DropWork {
    fn of(command: DropCommand) -> Result<Self, Failure> {
        let each = |id, verb, done| Self::Each { id, verb, done };
        Ok(match command {
            DropCommand::Create { file, warm } => {
                let (drop, sales) = drafts(&file)?;
                Self::Create { drop, sales, warm }
            }
            DropCommand::List { json } => Self::List { json },
            DropCommand::Show { id, json } => Self::Show { id, json },
            DropCommand::Edit { id, form } => Self::Edit { id, form },
            DropCommand::Warm { id } => each(id, DropVerb::Warm, "warmed"),
            DropCommand::Pause { id } => each(id, DropVerb::Pause, "paused"),
            DropCommand::Resume { id } => each(id, DropVerb::Resume, "resumed"),
            DropCommand::Hide { id } => each(id, DropVerb::Hide, "hidden"),
            DropCommand::Publish { id } => each(id, DropVerb::Publish, "published"),
            DropCommand::Move { from, to, units, name } => {
                if from == to {
                    return Err(Failure::Usage("expected two sales: units move from one to another".to_owned()));
                }
                Self::Move(MoveForm { from, to, units, name: named(name) })
            }
            DropCommand::Close { id } => Self::Close(id),
            DropCommand::Archive { id, to, remove } => Self::Archive { id, to, remove },
        })
    }
}

/// Reads and checks the file of a drop.
fn drafts(file: &Path) -> Result<(SalesDrop, Vec<(Sale, Timetable)>), Failure> {
    let name = file.display();
    let text = input::text(file, FILE_BYTES_MAX, "which no drop is")?;
    let form: NewDropForm =
        serde_json::from_str(&text).map_err(|error| Failure::Usage(format!("--file: {name}: {error}")))?;
    form.drafts().map_err(|bad| Failure::Usage(format!("--file: {name}: {bad}")))
}

async fn show(control: &SaleControl, id: &DropId, json: bool) -> Result<(), Failure> {
    if json {
        output::json(&control.drop_detail(id).await?);
        return Ok(());
    }
    let (drop, sales) = control.drop_with_sales(id).await?;
    let timetables = control.timetables_of(&sales).await?;
    let by = sales.first().map_or_else(LimitBy::default, |sale| sale.limit_by);
    let limit = shown_limit(drop.limit, by);
    output::table(
        ["field", "value"],
        [["drop", drop.drop_id.as_str()], ["title", &drop.title], ["limit", &limit]].map(|row| row.map(str::to_owned)),
    );
    output::table(
        ["sale", "title", "status", "granted", "unsold", "limit", "starts", "ends"],
        sales.iter().map(|sale| {
            [
                sale.sale_id.to_string(),
                sale.title.clone(),
                sale.status.code().to_owned(),
                sale.granted.to_string(),
                sale.stock.to_string(),
                sale.policy.limit().map_or_else(none, |limit| limit.to_string()),
                shown_time(sale.starts_at_ms),
                shown_time(sale.ends_at_ms),
            ]
        }),
    );
    let planned = sales.iter().filter_map(|sale| Some((sale, timetables.get(&sale.sale_id)?)));
    let rows: Vec<[String; 3]> = planned.map(|(sale, known)| planned_row(sale, known)).collect();
    if !rows.is_empty() {
        output::table(["sale", "releases", "unsold at the end"], rows);
    }
    let needy: Vec<&Sale> = sales.iter().filter(|sale| sale.needs.is_some()).collect();
    if !needy.is_empty() {
        output::table(["sale", "a buyer needs"], needy.iter().map(|sale| [sale.sale_id.to_string(), needs(sale)]));
    }
    Ok(())
}

fn planned_row(sale: &Sale, known: &KnownTimetable) -> [String; 3] {
    let releases = shown_releases(&known.timetable.releases);
    let releases: Vec<String> = releases
        .iter()
        .zip(&known.given)
        .map(|(of, given)| release(of.units, &shown_time(of.at.timestamp_millis()), *given))
        .collect();
    let releases = if releases.is_empty() { none() } else { releases.join(", ") };
    let unsold = known.timetable.rollover_to.as_ref().map_or_else(|| "stays".to_owned(), |to| format!("goes to {to}"));
    [sale.sale_id.to_string(), releases, unsold]
}

fn none() -> String {
    "none".to_owned()
}

fn shown_limit(limit: Option<NonZeroU32>, by: LimitBy) -> String {
    let who = match by {
        LimitBy::Account => "a buyer",
        LimitBy::Person => "a person",
    };
    limit.map_or_else(none, |limit| format!("{limit} {who} over all sales"))
}

async fn list(control: &SaleControl, json: bool) -> Result<(), Failure> {
    let drops = control.drops().await?;
    if json {
        output::json(&json!({ "drops": drops }));
        return Ok(());
    }
    output::table(
        ["drop", "title", "limit", "sales"],
        drops.into_iter().map(|drop| {
            let sales: Vec<&str> = drop.sale_ids.iter().map(SaleId::as_str).collect();
            let limit = drop.limit.map_or_else(none, |limit| format!("{limit} over all sales"));
            [drop.drop_id.to_string(), drop.title, limit, sales.join(" ")]
        }),
    );
    Ok(())
}

pub(super) async fn run(layers: &Layers, data_dir: &Path, command: DropCommand) -> Result<u8, Failure> {
    // A mistake shows before any server is called.
    let command = DropWork::of(command)?;
    let settings = context::settings(layers, data_dir)?;
    let servers = context::servers(&settings).await?;
    let (actor, control) = (context::operator(), servers.sale_control(&settings));
    let each = async |id: &DropId, verb: DropVerb, done: &str| {
        let mut failed = 0;
        for (sale, of_sale) in control.each_of_drop(&actor, id, verb).await? {
            match of_sale {
                Ok(()) => output::line(&format!("{done} {sale}")),
                Err(error) => {
                    failed += 1;
                    output::complain(&format!("{sale}: {error}"));
                }
            }
        }
        let left = format!("{failed} of the sales were not {done}; repeat it, which changes nothing else");
        if failed == 0 { Ok(()) } else { Err(Failure::Failed(left)) }
    };
    match command {
        DropWork::Create { drop, sales, warm } => {
            let id = &drop.drop_id;
            match control.create_drop(&actor, &drop, &sales).await? {
                DropCreated::Now => output::line(&format!("created {id} with {} sales", sales.len())),
                DropCreated::Before => output::line(&format!("{id} is there already, with the same sales")),
            }
            if warm {
                each(id, DropVerb::Warm, "warmed").await?;
            }
        }
        DropWork::List { json } => list(&control, json).await?,
        DropWork::Show { id, json } => show(&control, &id, json).await?,
        DropWork::Edit { id, form } => {
            control.edit_drop(&actor, &id, &form).await?;
            output::line(&format!("edited {id}"));
        }
        DropWork::Each { id, verb, done } => each(&id, verb, done).await?,
        DropWork::Move(form) => {
            let moved =
                control.move_in_drop(&actor, None, &form).await.map_err(|error| may_repeat(error, &form.name))?;
            let (taken, asked, name) = (moved.taken, moved.asked, moved.name);
            output::line(&format!("{taken} of {asked} units moved from {} to {} (move {name})", form.from, form.to));
            if moved.target_closed {
                output::remark(&format!("{} was closed meanwhile: they are in its books, and not on sale", form.to));
            }
        }
        DropWork::Close(id) => {
            for sale in control.close_drop(&actor, &id).await? {
                output::line(&format!("closed {sale}; what was accepted still lands"));
            }
        }
        DropWork::Archive { id, to, remove } => archive::drop(&servers, &settings, &id, (to, remove)).await?,
    }
    servers.redis.quit().await;
    Ok(0)
}
