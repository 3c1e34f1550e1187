//! What went wrong, as far as a caller can act on it.
//!
//! The driver hands server errors over as text without their number, so they are distinguished by their English text (the
//! session sets `lc_messages = 'en_US'`). An unknown text is [`DbError::Other`]: never taken for a business
//! answer, always rolled back, its connection closed. This is written by hand because no crate maps these texts.

use crate::domain::ids::SaleId;
use diesel::result::{ConnectionError, DatabaseErrorKind, Error};

/// An error of the database or of the way to it. Nothing of the call is committed, except after [`DbError::Unavailable`]
/// and [`DbError::Timeout`], where it is unknown: read the request by its id (window 64).
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DbError {
    /// A unique key has this value already; the name of the key.
    #[error("a row with this key exists already: {0}")]
    Duplicate(String),
    /// The transaction was rolled back as a deadlock's victim (1213) or by contention; trying again works.
    #[error("the database rolled back because of contention, try again")]
    Deadlock,
    /// A lock was not granted in time (1205); only the statement was undone, so the rest was rolled back by us.
    #[error("a row is locked for too long, try again later")]
    LockWait,
    /// Another session holds the stock row of this sale for longer than a lock wait; other sales are not affected.
    #[error("the stock row of sale {0} is locked, find who holds it: SHOW ENGINE INNODB STATUS")]
    SaleLocked(SaleId),
    /// Nothing was found out about this request: the call sat out its share of lock waits with others of its group.
    #[error(
        "not tried: rows of other requests in its group are locked, find who holds them: SHOW ENGINE INNODB STATUS"
    )]
    LeftUntried,
    /// An accepted request's sale has no row here. Nothing is decided about the request.
    #[error("the database does not know sale {0}: its row is lost, or mysql.url is of another database")]
    UnknownSale(SaleId),
    /// No usable server: connection refused or lost, shutting down, full, not migrated.
    #[error("database is unavailable: {0}")]
    Unavailable(String),
    /// No answer in time.
    #[error("database did not answer in time: {0}")]
    Timeout(String),
    /// A replica, a primary that was demoted, or a node of Galera that is not ready, with its words: this server takes no writes
    /// now, another may.
    #[error("this server of the database takes no writes, point mysql.url at the primary: {0}")]
    WrongNode(String),
    /// Files of this server are damaged; another server, if there is one, has its own.
    #[error(
        "files of this server of the database are damaged, see \"A server that does not start\" in docs/operations.md: {0}"
    )]
    Damaged(String),
    /// Anything else, with the server's text.
    #[error("database error: {0}")]
    Other(String),
}

impl DbError {
    /// Whether the database as a whole is the problem, so that trying other rows is pointless now.
    #[must_use]
    pub const fn is_outage(&self) -> bool {
        match self {
            Self::Unavailable(_) | Self::Timeout(_) | Self::WrongNode(_) | Self::Damaged(_) => true,
            Self::Duplicate(_)
            | Self::Deadlock
            | Self::LockWait
            | Self::SaleLocked(_)
            | Self::LeftUntried
            | Self::UnknownSale(_)
            | Self::Other(_) => false,
        }
    }

    /// Whether the request was not tried for what it is, so that its attempts are not spent: rows of others were locked.
    #[must_use]
    pub const fn is_no_attempt(&self) -> bool {
        matches!(self, Self::SaleLocked(_) | Self::LeftUntried)
    }

    /// Whether it waited for a locked row in vain.
    pub(crate) const fn is_lock_wait(&self) -> bool {
        matches!(self, Self::LockWait | Self::SaleLocked(_))
    }

    /// Whether another server of the database may do better.
    pub(crate) const fn is_about_the_server(&self) -> bool {
        matches!(self, Self::Timeout(_) | Self::WrongNode(_) | Self::Damaged(_))
    }

    /// Whether it is a violation of any unique key.
    pub(crate) const fn is_duplicate(&self) -> bool {
        matches!(self, Self::Duplicate(_))
    }

    /// Whether it is a violation of this unique key.
    pub(crate) fn is_duplicate_of(&self, name: &str) -> bool {
        matches!(self, Self::Duplicate(key) if key == name)
    }

    /// Whether the connection is certainly in step with the server after this error: only what it said of a row is that.
    pub(crate) const fn keeps_connection(&self) -> bool {
        self.is_duplicate()
    }
}

impl From<Error> for DbError {
    fn from(error: Error) -> Self {
        let Error::DatabaseError(kind, info) = &error else {
            return Self::Other(error.to_string());
        };
        let text = info.message();
        // Foreign enum, non-exhaustive: the two kinds that are certain, the rest by text.
        if matches!(kind, DatabaseErrorKind::UniqueViolation) {
            Self::Duplicate(key_of(text).to_owned())
        } else if matches!(kind, DatabaseErrorKind::ReadOnlyTransaction) {
            Self::WrongNode(text.to_owned())
        } else {
            by_text(text)
        }
    }
}

impl From<ConnectionError> for DbError {
    fn from(error: ConnectionError) -> Self {
        Self::Unavailable(error.to_string())
    }
}

/// Why a transaction writes nothing: for a reason of its caller's own, or because of the database. Both roll back.
pub(crate) enum Halt<R> {
    Because(R),
    Db(DbError),
}

impl<R> From<DbError> for Halt<R> {
    fn from(error: DbError) -> Self {
        Self::Db(error)
    }
}

impl<R> From<Error> for Halt<R> {
    fn from(error: Error) -> Self {
        Self::Db(error.into())
    }
}

type Build = fn(&str) -> DbError;

/// Texts of the server and the driver, with what they mean; the first match counts.
const TEXTS: [(&str, Build); 37] = [
    ("Deadlock found", |_| DbError::Deadlock),
    ("Record has changed since last read", |_| DbError::Deadlock),
    ("Plugin instructed the server to rollback", |_| DbError::Deadlock),
    ("WSREP detected deadlock/conflict", |_| DbError::Deadlock),
    ("wsrep aborted transaction", |_| DbError::Deadlock),
    // Of a transaction that was undone without a word, see `transaction`.
    ("SAVEPOINT seckill does not exist", |_| DbError::Deadlock),
    ("Lock wait timeout exceeded", |_| DbError::LockWait),
    ("Query execution was interrupted", |text| DbError::Timeout(text.to_owned())),
    ("read-only", wrong_node),
    ("READ ONLY transaction", wrong_node),
    ("has not yet prepared node", wrong_node),
    // Refused before the commit: a member of a group without a majority, or one that has left it.
    ("while running replication hook", wrong_node),
    ("Input/output error", unavailable),
    ("Driver error", unavailable),
    // A file with a damaged page, or without one that it should have.
    ("try to repair it", damaged),
    ("should be repaired", damaged),
    ("orrupt", damaged),
    ("doesn't exist in engine", damaged),
    ("Tablespace is missing", damaged),
    ("Connection was killed", unavailable),
    ("disconnected by the server because of inactivity", unavailable),
    ("Session was killed", unavailable),
    // A commit that failed half-way through its plugins: unknown, as if the answer had been lost.
    ("during COMMIT", unavailable),
    ("shutdown in progress", unavailable),
    ("Server is shutting down", unavailable),
    ("Normal shutdown", unavailable),
    ("Too many connections", unavailable),
    ("Too many active concurrent transactions", unavailable),
    ("command denied", unavailable),
    ("Disk full", unavailable),
    ("No space left", unavailable),
    ("is full", unavailable),
    // All that our sessions write: they read committed rows, whose statements cannot be logged as such.
    ("impossible to write to binary log", statement_format),
    ("Binary logging not possible", unavailable),
    ("Unknown database", not_migrated),
    ("doesn't exist", not_migrated),
    ("Unknown column", not_migrated),
];

/// How errors begin that are about a value, whatever they quote.
const DATA_ERRORS: [&str; 6] =
    ["Incorrect ", "Data t", "Out of range", "Truncated incorrect ", "You have an error in your SQL", "Column '"];

/// And one that is not, although it begins so.
const DAMAGED_KEY_FILE: &str = "Incorrect key file";

fn unavailable(text: &str) -> DbError {
    DbError::Unavailable(text.to_owned())
}

fn wrong_node(text: &str) -> DbError {
    DbError::WrongNode(text.to_owned())
}

fn damaged(text: &str) -> DbError {
    DbError::Damaged(text.to_owned())
}

fn not_migrated(text: &str) -> DbError {
    DbError::Unavailable(format!("{text}; run `seckill migrate`"))
}

fn statement_format(text: &str) -> DbError {
    DbError::Unavailable(format!("{text}; SET GLOBAL binlog_format = 'ROW', and the same in my.cnf"))
}

fn by_text(text: &str) -> DbError {
    // A value quoted in a data error may hold any text, so only errors that quote no values are searched anywhere.
    if DATA_ERRORS.iter().any(|start| text.starts_with(start)) && !text.starts_with(DAMAGED_KEY_FILE) {
        return DbError::Other(text.to_owned());
    }
    TEXTS
        .iter()
        .find(|(part, _)| text.contains(part))
        .map_or_else(|| DbError::Other(text.to_owned()), |(_, build)| build(text))
}

/// The key in `Duplicate entry '…' for key 'orders.uk_x'` (MySQL) or `… for key 'uk_x'` (MariaDB). Read from the end: the
/// entry may hold anything.
fn key_of(text: &str) -> &str {
    let quoted = text.trim_end().trim_end_matches('\'');
    let key = quoted.rsplit('\'').next().unwrap_or(quoted);
    key.rsplit('.').next().unwrap_or(key)
}

#[cfg(test)]
mod tests;
