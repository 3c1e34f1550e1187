//! Many sales and drops at once: checked as a whole, created all or nothing, and as often as the file is given.
//!
//! Input: a checked file. Output: the sales that were not there, as drafts, in one transaction with their acts; then, where that is asked
//! for, in Redis, one after the other. A crash leaves all of the drafts or none; repeating finishes the rest.

use super::contention::again_after_contention;
use super::control::SaleControl;
use super::control_error::SaleControlError;
use super::recorded::SaleAct;
use crate::domain::drops::SalesDrop;
use crate::domain::ids::SaleId;
use crate::domain::operator::{Actor, Operation};
use crate::domain::sale::Sale;
use crate::domain::timetable::Timetable;
use crate::faults::crash_point;
use crate::sales::forms::{Import, ImportEntry, ImportProblem, Place, PlannedLine};
use crate::sales::rows::error::SaleError;
use crate::sales::rows::import::{KnownOfImport, NewSales};
use crate::sales::rows::timetable::KnownTimetable;
use crate::store::mysql::DbError;
use serde_json::{Value, json};
use std::time::Duration;

/// How often what is there is read: another import of the same file may be quicker than this one, between reading and creating.
const CHECKS_MAX: u32 = 10;

/// Before the next of them.
const CHECK_AGAIN: Duration = Duration::from_millis(200);

/// Whether the same may be asked again: another process has created some of it, or holds the rows while it does. Nothing was written.
const fn is_of_another_import(error: &SaleError) -> bool {
    matches!(error, SaleError::Exists(_) | SaleError::DropExists(_) | SaleError::Db(DbError::LockWait))
}

/// Why nothing was imported.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ImportError {
    /// What is there is not what the file says, of each entry.
    #[error("nothing was imported")]
    Differs(Vec<ImportProblem>),
    /// A server did not answer, or refused.
    #[error(transparent)]
    Control(#[from] SaleControlError),
}

/// What became of a file.
#[derive(Debug, Default)]
pub(crate) struct Imported {
    /// The sales that were created now, in the order of the file.
    pub(crate) created: Vec<SaleId>,
    /// Those that were there, as the file says.
    pub(crate) as_asked: Vec<SaleId>,
}

impl SaleControl {
    /// Creates what the database lacks of the file; what is there has to be as the file says. On record with each sale.
    ///
    /// # Errors
    /// [`ImportError`], and nothing is created; after [`SaleControlError::leaves_open`] all may be. Repeating is safe.
    pub(crate) async fn import(&self, actor: &Actor, import: &Import, sha256: &str) -> Result<Imported, ImportError> {
        for _ in 1..CHECKS_MAX {
            match self.import_once(actor, import, sha256).await {
                Err(ImportError::Control(SaleControlError::Sale(error))) if is_of_another_import(&error) => {
                    tokio::time::sleep(CHECK_AGAIN).await;
                }
                done => return done,
            }
        }
        self.import_once(actor, import, sha256).await
    }

    async fn import_once(&self, actor: &Actor, import: &Import, sha256: &str) -> Result<Imported, ImportError> {
        let sale_ids: Vec<&SaleId> = import.sales().map(|(sale, _)| &sale.sale_id).collect();
        let drop_ids: Vec<_> = import.drops().map(|drop| &drop.drop_id).collect();
        let known = self.rows.sales.known_of_import(&sale_ids, &drop_ids).await.map_err(SaleControlError::from)?;
        let (mut new, mut imported, mut problems): (Vec<NewSales<'_>>, _, Vec<ImportProblem>) =
            (Vec::new(), Imported::default(), Vec::new());
        for (place, entry) in &import.entries {
            let ids = entry.sales().iter().map(|(sale, _)| sale.sale_id.clone());
            match compared(&known, entry) {
                Compared::New => {
                    imported.created.extend(ids);
                    new.push((entry.drop(), entry.sales()));
                }
                Compared::AsAsked => imported.as_asked.extend(ids),
                Compared::Differs(found) => problems.extend(found.into_iter().map(|found| found.at(*place))),
            }
        }
        if !problems.is_empty() {
            return Err(ImportError::Differs(problems));
        }
        let Some(first) = imported.created.first() else { return Ok(imported) };
        let asked = json!({ "import": { "sha256": sha256, "sales": imported.created.len() } });
        let act = SaleAct { actor, operation: Operation::SaleCreate, sale_id: first, asked };
        let creating = again_after_contention(|| async { Ok(self.rows.sales.create_all(&new).await?) });
        self.on_record(act, creating).await?;
        crash_point!(ImportCommitted);
        Ok(imported)
    }

    /// Puts the stock of one of its sales into Redis, on record.
    pub(crate) async fn warm_imported(&self, actor: &Actor, id: &SaleId) -> Result<(), SaleControlError> {
        let act = SaleAct { actor, operation: Operation::SaleWarm, sale_id: id, asked: Value::Null };
        self.on_record(act, self.warm(id)).await
    }
}

/// What is there of an entry.
enum Compared {
    New,
    AsAsked,
    Differs(Vec<Difference>),
}

/// How one sale or drop is not as the file says.
struct Difference {
    subject: String,
    field: &'static str,
    problem: String,
}

impl Difference {
    fn at(self, place: Place) -> ImportProblem {
        let Self { subject, field, problem } = self;
        ImportProblem { place, subject, field: field.to_owned(), problem }
    }
}

fn compared(known: &KnownOfImport, entry: &ImportEntry) -> Compared {
    let mut found = Vec::new();
    let there = entry.drop().and_then(|drop| known.drops.get(&drop.drop_id));
    if let (Some(asked), Some(there)) = (entry.drop(), there) {
        found.extend(of_drop(there, asked));
    }
    let (mut missing, mut same) = (0, 0);
    for (sale, plan) in entry.sales() {
        let subject = format!("sale {}", sale.sale_id);
        if known.archived.contains(&sale.sale_id) {
            let problem = "was archived, and is not given again; choose another id".to_owned();
            found.push(Difference { subject, field: "sale_id", problem });
            continue;
        }
        match known.sales.get(&sale.sale_id) {
            None => missing += 1,
            Some((there, timetable)) => {
                let differences = of_sale((there, timetable), (sale, plan));
                same += usize::from(differences.is_empty());
                found.extend(differences.into_iter().map(|(field, problem)| Difference {
                    subject: subject.clone(),
                    field,
                    problem,
                }));
            }
        }
    }
    if !found.is_empty() {
        Compared::Differs(found)
    } else if missing == 0 {
        Compared::AsAsked
    } else if same == 0 && there.is_none() {
        Compared::New
    } else {
        // Sales and their drop come and go together.
        let problem = "some of its sales are there, and some are not".to_owned();
        Compared::Differs(vec![Difference { subject: String::new(), field: "sales", problem }])
    }
}

fn of_drop(there: &SalesDrop, asked: &SalesDrop) -> Vec<Difference> {
    let shown =
        |limit: Option<std::num::NonZeroU32>| limit.map_or_else(|| "none".to_owned(), |limit| limit.to_string());
    let ids = |drop: &SalesDrop| drop.sale_ids.iter().map(SaleId::as_str).collect::<Vec<_>>().join(" ");
    let fields = [
        ("title", there.title.clone(), asked.title.clone()),
        ("limit", shown(there.limit), shown(asked.limit)),
        ("sales", ids(there), ids(asked)),
    ];
    let subject = || format!("drop {}", asked.drop_id);
    let differing = fields.into_iter().filter(|(_, there, asked)| there != asked);
    differing
        .map(|(field, there, asked)| Difference { subject: subject(), field, problem: is_there(&there, &asked) })
        .collect()
}

fn is_there(there: &str, asked: &str) -> String {
    format!("is {there} in the database, and {asked} in the file")
}

/// The fields in which a sale is not what the file says. Whether buyers see it, and how many units it was given since, is not in question.
fn of_sale(
    (there, known): (&Sale, &KnownTimetable),
    (asked, plan): (&Sale, &Timetable),
) -> Vec<(&'static str, String)> {
    let shown = |value: Value| if let Value::String(text) = value { text } else { value.to_string() };
    let fields = |sale: &Sale, stock: i64, plan: &Timetable| {
        let releases: Vec<(i64, u32)> = plan.releases.iter().map(|release| (release.at_ms, release.units)).collect();
        [
            ("drop_id", json!(sale.in_drop.as_ref().map(|drop| &drop.drop_id))),
            ("product_id", json!(sale.product_id)),
            ("title", json!(sale.title)),
            ("stock", json!(stock)),
            ("limit", json!(sale.policy.limit())),
            ("price_cents", json!(sale.price_cents)),
            ("currency", json!(sale.currency)),
            ("starts_at", json!(crate::http::times::shown_time(sale.starts_at_ms))),
            ("ends_at", json!(crate::http::times::shown_time(sale.ends_at_ms))),
            ("token_required", json!(sale.token_required)),
            ("waiting_room", json!(sale.waiting_room)),
            ("pay_within_s", json!(sale.payment.map(|terms| terms.pay_within_s))),
            ("pay_grace_s", json!(sale.payment.map(|terms| terms.pay_grace_s))),
            ("needs", json!(sale.needs.as_deref())),
            ("limit_by", json!(sale.limit_by)),
            ("challenge", json!(sale.challenge)),
            ("limit_returns", json!(sale.payment.map(|terms| terms.limit_returns))),
            ("releases", json!(releases)),
            ("rollover_to", json!(plan.rollover_to)),
            ("line", json!(plan.line.map(PlannedLine::from))),
        ]
    };
    let there = fields(there, there.granted - known.given_units(), &known.timetable);
    let pairs = there.into_iter().zip(fields(asked, asked.granted, plan));
    let differing = pairs.filter(|((_, there), (_, asked))| there != asked);
    differing.map(|((field, there), (_, asked))| (field, is_there(&shown(there), &shown(asked)))).collect()
}
