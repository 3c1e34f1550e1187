//! The checks of the database: version, migrations, settings, sales that were not closed.

use super::advice;
use super::check::{CheckVerdict, DoctorCheck, at_least};
use crate::p5_reconcile::rows::BookRows;
use crate::runtime::now_ms;
use crate::store::mysql::{Db, checks, migrate, tables};

/// Name of the check of the schema.
pub(super) const MIGRATED: &str = "migrations";
const SERVER: &str = "mysql";

pub(super) async fn check_mysql(db: &Db) -> Vec<DoctorCheck> {
    let identity = match checks::identity(db).await {
        Ok(identity) => identity,
        Err(error) => return vec![DoctorCheck::away(SERVER, &error)],
    };
    let least = if identity.version.contains("MariaDB") { [10, 6] } else { [8, 0] };
    let mut found =
        vec![DoctorCheck::new(SERVER, "version", identity.version.clone(), "MySQL 8.0, MariaDB 10.6 or newer").judged(
            at_least(&identity.version, least),
            CheckVerdict::Wrong,
            "older servers ignore CHECK constraints or lack window functions",
            "upgrade the database",
        )];
    let mut has_tables = true;
    match migrate::pending(db).await {
        Ok(pending) => {
            let value =
                if pending.is_empty() { "all applied".to_owned() } else { format!("missing {}", pending.join(", ")) };
            found.push(DoctorCheck::new(SERVER, MIGRATED, value, "all applied").judged(
                pending.is_empty(),
                CheckVerdict::Wrong,
                "this build's statements need this schema",
                "seckill migrate",
            ));
            has_tables = pending.is_empty();
        }
        Err(error) => found.push(DoctorCheck::away(SERVER, &error)),
    }
    match checks::checks(db).await {
        // Without the tables the checks on them would only repeat it.
        Ok(checks) => found.extend(
            checks.into_iter().filter(|check| has_tables || !checks::OF_TABLES.contains(&check.name)).map(|check| {
                let advice::Advice { why, change, required } = advice::mysql(check.name);
                let otherwise = if required { CheckVerdict::Wrong } else { CheckVerdict::Warning };
                DoctorCheck::new(SERVER, check.name, check.value, check.expected)
                    .judged(check.ok, otherwise, why, change)
            }),
        ),
        Err(error) => found.push(DoctorCheck::away(SERVER, &error)),
    }
    if has_tables {
        found.push(damage(db).await);
    }
    found
}

/// Tables that cannot be read; of a database that answered and has them.
async fn damage(db: &Db) -> DoctorCheck {
    let unreadable = match tables::unreadable(db).await {
        Ok(unreadable) => unreadable,
        Err(error) => return DoctorCheck::away(SERVER, &error),
    };
    let value = if unreadable.is_empty() { "none".to_owned() } else { unreadable.join("; ") };
    DoctorCheck::new(SERVER, "tables that cannot be read", value, "none").judged(
        unreadable.is_empty(),
        CheckVerdict::Wrong,
        "a file of the database is damaged; it serves until what is damaged is needed",
        "restore the newest backup and the binary log to its end (docs/operations.md, A server that does not start)",
    )
}

/// Sales that ended and were not closed; of a database that answered and has its tables.
pub(super) async fn ended_sales(books: &BookRows, auto_close_after_s: u64) -> Vec<DoctorCheck> {
    let found = match books.ended_open(now_ms(), auto_close_after_s).await {
        Ok(found) => found,
        Err(error) => return vec![DoctorCheck::away(SERVER, &error)],
    };
    let named: Vec<&str> = found.named.iter().map(|id| id.as_str()).collect();
    let value = if found.count == 0 { "0".to_owned() } else { format!("{}: {}", found.count, named.join(", ")) };
    vec![DoctorCheck::new(SERVER, "sales that ended and were not closed", value, "0").judged(
        found.count == 0,
        CheckVerdict::Warning,
        "they ended more than an hour (and p5_reconcile.auto_close_after_s) ago; their keys stay in Redis, and each audit walks them",
        "seckill sale close ID for each (of a drop: seckill drop close ID), when nothing of it is on its way",
    )]
}
