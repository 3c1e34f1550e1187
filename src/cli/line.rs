//! `seckill line …`: the lines of sales, and their draws.

use super::failure::{Failure, INCONSISTENT};
use super::{context, input, output};
use crate::config::Layers;
use crate::domain::draw::hex;
use crate::domain::ids::{EntryId, SaleId};
use crate::domain::line::BEACON_CHARS_MAX;
use crate::http::times::shown_time;
use crate::lines::document::DrawDocument;
use crate::lines::forms::EntriesForm;
use crate::lines::listing::EntriesPage;
use crate::lines::rows::{BeaconGiven, Line};
use crate::lines::verify::{read_list, verify};
use crate::p1_entry::lines::Receipts;
use crate::roles::Servers;
use serde_json::json;
use std::path::{Path, PathBuf};

/// Largest list, bytes: 5,000,000 ids of 19 digits.
const LIST_BYTES_MAX: u64 = 100_000_000;
/// Largest document of a draw, bytes.
const DRAW_BYTES_MAX: u64 = 100_000;

/// `seckill line …`
#[derive(Debug, clap::Subcommand)]
pub(super) enum LineCommand {
    /// Show the line of a sale: its state, its entries, and what is public of its draw
    Show {
        sale: SaleId,
        #[arg(long)]
        json: bool,
    },
    /// List the entries of a sale's line with their buyers, in the order of their ids
    Entries {
        sale: SaleId,
        #[command(flatten)]
        form: EntriesForm,
        #[arg(long)]
        json: bool,
    },
    /// Draw a line that waits for a text from outside, once its list is sealed; safe to repeat with the same text
    ///
    /// The text should be one that no person could know at the close: the numbers of a lottery or the closing prices of a stock exchange of
    /// a time that was announced before.
    #[command(after_help = "Example:
  seckill line draw sneaker-41 --beacon \"lotto 2027-03-03: 4 8 15 16 23 42\"")]
    Draw {
        sale: SaleId,
        /// The text, 1 to 200 characters
        #[arg(long, value_name = "TEXT")]
        beacon: String,
    },
    /// Recompute a draw from what is public of it; asks no server, exit code 2 when it does not agree
    #[command(after_help = "Example:
  curl https://shop.example/v1/sales/sneaker-41/draw > draw.json
  curl https://shop.example/v1/sales/sneaker-41/draw/entries > entries.txt
  seckill line verify entries.txt --draw draw.json --entry 254385310867492864")]
    Verify {
        /// The list of entry ids; - is standard input
        file: PathBuf,
        /// The document of the draw
        #[arg(long, value_name = "FILE")]
        draw: PathBuf,
        /// Print the rank of this entry, too
        #[arg(long, value_name = "ID")]
        entry: Option<EntryId>,
        /// How many of the first ranks are printed
        #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u32).range(0..=5_000_000))]
        first: u32,
        #[arg(long)]
        json: bool,
    },
    /// Read a receipt that a buyer shows; exit code 2 when it is none of ours
    Receipt {
        /// The receipt, as the buyer got it
        receipt: String,
    },
}

pub(super) async fn run(layers: &Layers, data_dir: &Path, command: LineCommand) -> Result<u8, Failure> {
    match command {
        LineCommand::Verify { file, draw, entry, first, json } => verified(&file, &draw, entry, (first, json)),
        LineCommand::Show { sale, json } => {
            let rows = Servers::new(&context::settings(layers, data_dir)?)?.rows.lines;
            let line = rows.line(&sale).await?.ok_or_else(|| Failure::Failed(format!("sale {sale} has no line")))?;
            show(&line, json);
            Ok(0)
        }
        LineCommand::Entries { sale, form, json } => {
            let query = form.query()?;
            let rows = Servers::new(&context::settings(layers, data_dir)?)?.rows.lines;
            rows.line(&sale).await?.ok_or_else(|| Failure::Failed(format!("sale {sale} has no line")))?;
            list(&EntriesPage::of(rows.entries(&sale, query).await?, query.limit), json);
            Ok(0)
        }
        LineCommand::Draw { sale, beacon } => {
            if beacon.trim().is_empty() || beacon.chars().count() > BEACON_CHARS_MAX {
                return Err(Failure::Usage(format!("--beacon: expected 1 to {BEACON_CHARS_MAX} characters")));
            }
            let rows = Servers::new(&context::settings(layers, data_dir)?)?.rows.lines;
            let given = rows.draw_with(&context::operator(), &sale, &beacon).await?;
            output::line(&drawn(&sale, given)?);
            Ok(0)
        }
        LineCommand::Receipt { receipt } => {
            let settings = context::settings(layers, data_dir)?;
            let Some(said) = Receipts::new(settings.p1_entry.token_secrets_in_use()).read(&receipt) else {
                output::complain("this is no receipt that one of p1_entry.token_secrets has signed");
                return Ok(INCONSISTENT);
            };
            let entered_at = shown_time(said.entered_at_ms);
            output::json(&json!({
                "entry_id": said.entry, "sale_id": said.sale, "buyer": said.sub, "quantity": said.quantity,
                "entered_at": entered_at
            }));
            Ok(0)
        }
    }
}

fn drawn(sale: &SaleId, given: BeaconGiven) -> Result<String, Failure> {
    let refused = |why: String| Err(Failure::Failed(why));
    match given {
        BeaconGiven::Drawn => Ok(format!("the line of {sale} is drawn; seckill line show {sale}")),
        BeaconGiven::Before => Ok(format!("the line of {sale} was drawn before, with this text")),
        BeaconGiven::OtherBeacon(Some(text)) => {
            refused(format!("the line of {sale} was drawn before, with another text: {text}"))
        }
        BeaconGiven::OtherBeacon(None) | BeaconGiven::NotAwaited => {
            refused(format!("the line of {sale} was created without --line-beacon, it is drawn by itself"))
        }
        BeaconGiven::NotSealed(state) => {
            refused(format!("the line of {sale} is {}; it is drawn once its list is SEALED", state.code()))
        }
        BeaconGiven::NoLine => refused(format!("sale {sale} has no line")),
    }
}

fn list(page: &EntriesPage, json: bool) {
    if json {
        return output::json(page);
    }
    if page.entries.is_empty() {
        return output::line("no entry");
    }
    let text = |value: Option<String>| value.unwrap_or_else(|| "-".to_owned());
    output::table(
        ["entry", "buyer", "units", "state", "rank", "request", "entered"],
        page.entries.iter().map(|entry| {
            [
                entry.entry_id.to_string(),
                entry.user_id.as_str().to_owned(),
                entry.quantity.to_string(),
                entry.state.to_owned(),
                text(entry.rank.map(|rank| rank.to_string())),
                text(entry.request_id.map(|id| id.to_string())),
                entry.entered_at.clone(),
            ]
        }),
    );
    output::more("after", page.next);
}

fn show(line: &Line, json: bool) {
    let draw = DrawDocument::of(line);
    if json {
        return output::json(&json!({ "draw": draw, "rows": line.entries }));
    }
    let text = |value: Option<String>| value.unwrap_or_else(|| "-".to_owned());
    let beacon = match (&draw.beacon, draw.needs_beacon) {
        (Some(beacon), _) => beacon.clone(),
        (None, true) => "waits for one: seckill line draw".to_owned(),
        (None, false) => "none".to_owned(),
    };
    output::table(
        ["field", "value"],
        [
            ["sale".to_owned(), draw.sale_id],
            ["kind".to_owned(), draw.kind],
            ["state".to_owned(), draw.state],
            ["entries".to_owned(), line.entries.to_string()],
            ["closes".to_owned(), draw.closes_at],
            ["commitment".to_owned(), draw.commitment],
            ["digest".to_owned(), text(draw.digest)],
            ["seed".to_owned(), text(draw.seed)],
            ["beacon".to_owned(), beacon],
            ["sealed".to_owned(), text(draw.sealed_at)],
            ["drawn".to_owned(), text(draw.drawn_at)],
        ],
    );
}

fn verified(file: &Path, draw: &Path, entry: Option<EntryId>, (first, json): (u32, bool)) -> Result<u8, Failure> {
    let text = input::text(draw, DRAW_BYTES_MAX, "which no draw is")?;
    let document: DrawDocument = serde_json::from_str(&text)
        .map_err(|error| Failure::Usage(format!("--draw: {} is no draw: {error}", draw.display())))?;
    let list = input::text(file, LIST_BYTES_MAX, "which no list is")?;
    let checked = read_list(&list).map_err(|problem| vec![format!("{}: {problem}", file.display())]);
    let verified = match checked.and_then(|ids| verify(ids, &document)) {
        Ok(verified) => verified,
        Err(problems) => {
            problems.iter().for_each(|problem| output::complain(problem));
            return Ok(INCONSISTENT);
        }
    };
    let ranks = verified.ranks.as_ref();
    let first = ranks.map(|ranks| ranks.first(first as usize));
    let rank = entry.and_then(|entry| ranks.and_then(|ranks| ranks.of(entry.get())));
    if json {
        let first = first.map(|ids| ids.iter().map(u64::to_string).collect::<Vec<_>>());
        output::json(
            &json!({ "entries": verified.entries, "digest": hex(&verified.digest), "first": first, "rank": rank }),
        );
        return Ok(0);
    }
    output::line(&format!("the draw of {} agrees: commitment, seed, list", document.sale_id));
    output::line(&format!("entries {}", verified.entries));
    output::line(&format!("digest  {}", hex(&verified.digest)));
    for (rank, id) in (1..).zip(first.into_iter().flatten()) {
        output::line(&format!("rank {rank:>7}  {id}"));
    }
    if let Some(entry) = entry {
        let said = rank.map_or_else(|| "is in no rank of this draw".to_owned(), |rank| format!("has rank {rank}"));
        output::line(&format!("entry {entry} {said}"));
    } else if ranks.is_none() {
        output::line(&format!("the line is {}: ranks come with the draw", document.state));
    }
    Ok(0)
}
