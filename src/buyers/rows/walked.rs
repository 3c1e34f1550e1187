//! Goes through a table page by page and puts the pseudonym in the place of the id, wherever a text names the buyer.
//!
//! Input: a table of [`SEARCHED`](super::searched::SEARCHED) and how far it was walked. Output: the next page, renamed in one transaction,
//! or only counted. A crash between two pages leaves both names; a repeat does the rest. A page reads the rows along their key, so it costs
//! the same whatever number of rows there is.

use crate::buyers::rows::forgotten::ForgottenRows;
use crate::buyers::rows::searched::{NamingColumn, SearchedTable, Walk};
use crate::buyers::spelling::{Names, Spelling};
use crate::store::mysql::fault::DbError;
use crate::store::mysql::pool::Conn;
use crate::store::mysql::transaction::transaction;
use diesel::QueryableByName;
use diesel::sql_types::{BigInt, Binary, Nullable, Text};
use diesel_async::{RunQueryDsl, SimpleAsyncConnection};

/// Rows of one page: some tens of milliseconds.
const PAGE: usize = 5_000;
/// Rows that are renamed in one transaction.
const RENAMED_MAX: usize = 200;

/// A walk through one table.
#[derive(Debug, Clone)]
pub(crate) struct TableWalk {
    /// The key of the last row, as a literal.
    after: String,
    /// Rows that name the buyer, so far.
    pub(crate) found: u64,
    pub(crate) is_over: bool,
}

impl TableWalk {
    /// At the beginning.
    pub(crate) fn of(table: &SearchedTable) -> Self {
        let (after, is_over) = match table.walk {
            Walk::Number(_) | Walk::Waits(_) => ("0", false),
            Walk::Bytes(_) => ("X''", false),
            Walk::Own | Walk::Nowhere => ("", true),
        };
        Self { after: after.to_owned(), found: 0, is_over }
    }
}

#[derive(QueryableByName)]
struct PageEnd {
    #[diesel(sql_type = BigInt)]
    n: i64,
    #[diesel(sql_type = Nullable<Text>)]
    last_key: Option<String>,
}

#[derive(QueryableByName)]
struct KeyRow {
    #[diesel(sql_type = Text)]
    k: String,
}

/// A row with its texts; columns that the table does not have are NULL.
#[derive(QueryableByName)]
struct TextRow {
    #[diesel(sql_type = Text)]
    k: String,
    #[diesel(sql_type = Nullable<Binary>)]
    c0: Option<Vec<u8>>,
    #[diesel(sql_type = Nullable<Binary>)]
    c1: Option<Vec<u8>>,
    #[diesel(sql_type = Nullable<Binary>)]
    c2: Option<Vec<u8>>,
    #[diesel(sql_type = Nullable<Binary>)]
    c3: Option<Vec<u8>>,
}

/// A table, its key, and the names that are searched in it.
struct Search<'a> {
    table: &'a SearchedTable,
    key: &'static str,
    names: &'a Names,
}

/// Bytes as a literal.
pub(super) fn bytes(of: &[u8]) -> String {
    let digits: String = of.iter().map(|byte| format!("{byte:02X}")).collect();
    format!("X'{digits}'")
}

impl Search<'_> {
    /// An expression whose value is the literal of this key.
    fn literal_of(&self, key: &str) -> String {
        match self.table.walk {
            Walk::Bytes(_) => format!("CONCAT('X''', HEX({key}), '''')"),
            Walk::Number(_) | Walk::Waits(_) | Walk::Own | Walk::Nowhere => format!("CAST({key} AS CHAR)"),
        }
    }

    /// Whether a row may name the buyer.
    fn may_name(&self) -> String {
        let of_column = |column: &NamingColumn| {
            let finds = |text: &String| match column.spelling {
                Spelling::Whole => format!("{} = {}", column.name, bytes(text.as_bytes())),
                Spelling::Body | Spelling::Words => {
                    format!("LOCATE({}, CAST({} AS BINARY)) > 0", bytes(text.as_bytes()), column.name)
                }
            };
            self.names.spelled().iter().map(finds).collect::<Vec<_>>().join(" OR ")
        };
        self.table.naming.iter().map(of_column).collect::<Vec<_>>().join(" OR ")
    }

    async fn page_end(&self, conn: &mut Conn, after: &str) -> Result<PageEnd, DbError> {
        let (key, table) = (self.key, self.table.name);
        let last = self.literal_of(&format!("MAX({key})"));
        let page = format!("SELECT {key} FROM {table} WHERE {key} > {after} ORDER BY {key} LIMIT {PAGE}");
        let end = format!("/* forget::page */ SELECT COUNT(*) AS n, {last} AS last_key FROM ({page}) AS page");
        Ok(diesel::sql_query(end).get_result(conn).await?)
    }

    async fn candidates(&self, conn: &mut Conn, after: &str, last: &str) -> Result<Vec<KeyRow>, DbError> {
        let (key, table, may_name) = (self.key, self.table.name, self.may_name());
        let found = format!(
            "/* forget::find */ SELECT {} AS k FROM {table} WHERE {key} > {after} AND {key} <= {last} AND ({may_name}) \
             ORDER BY {key} LIMIT {RENAMED_MAX}",
            self.literal_of(key)
        );
        Ok(diesel::sql_query(found).load(conn).await?)
    }

    /// The rows with these keys, locked where they are to be changed.
    async fn rows(&self, conn: &mut Conn, keys: &[KeyRow], lock: bool) -> Result<Vec<TextRow>, DbError> {
        let text = |at: usize| match self.table.naming.get(at) {
            Some(column) => format!("IF({}, CAST({} AS BINARY), NULL) AS c{at}", column.when, column.name),
            None => format!("CAST(NULL AS BINARY) AS c{at}"),
        };
        let keys: Vec<&str> = keys.iter().map(|row| row.k.as_str()).collect();
        let rows = format!(
            "/* forget::rows */ SELECT {} AS k, {} FROM {} WHERE {} IN ({}){}",
            self.literal_of(self.key),
            (0..4).map(text).collect::<Vec<_>>().join(", "),
            self.table.name,
            self.key,
            keys.join(", "),
            if lock { " FOR UPDATE" } else { "" }
        );
        Ok(diesel::sql_query(rows).load(conn).await?)
    }

    /// The statement that renames the buyer in a row; `None`: it names another one.
    fn renaming(&self, row: &TextRow) -> Option<String> {
        let texts = [&row.c0, &row.c1, &row.c2, &row.c3];
        let set: Vec<String> = self
            .table
            .naming
            .iter()
            .zip(texts)
            .filter_map(|(column, text)| {
                let renamed = self.names.renamed(column.spelling, text.as_deref()?)?;
                Some(format!("{} = {}", column.name, value(column, &renamed)))
            })
            .collect();
        (!set.is_empty())
            .then(|| format!("UPDATE {} SET {} WHERE {} = {}", self.table.name, set.join(", "), self.key, row.k))
    }
}

/// What a column gets; what is too long for it is cut.
fn value(column: &NamingColumn, renamed: &[u8]) -> String {
    let Some(chars_max) = column.chars_max else { return bytes(renamed) };
    let text = String::from_utf8_lossy(renamed);
    let end = text.char_indices().nth(chars_max).map_or(text.len(), |(at, _)| at);
    format!("_utf8mb4 {}", bytes(text[..end].as_bytes()))
}

impl ForgottenRows {
    /// The next page of a walk. With `rename` its rows get the pseudonym, else they are counted.
    ///
    /// # Errors
    /// [`DbError`]; the page is renamed or not.
    pub(crate) async fn walk(
        &self,
        table: &SearchedTable,
        names: &Names,
        walk: &TableWalk,
        rename: bool,
    ) -> Result<TableWalk, DbError> {
        let (Walk::Number(key) | Walk::Bytes(key) | Walk::Waits(key)) = table.walk else {
            return Ok(TableWalk { is_over: true, ..walk.clone() });
        };
        let search = Search { table, key, names };
        self.db
            .run("forget_walk", async |conn| {
                let end = search.page_end(conn, &walk.after).await?;
                let Some(last) = end.last_key else { return Ok(TableWalk { is_over: true, ..walk.clone() }) };
                let keys = search.candidates(conn, &walk.after, &last).await?;
                let page_is_left = keys.len() == RENAMED_MAX;
                let after = keys.last().filter(|_| page_is_left).map_or(last, |row| row.k.clone());
                let is_over = !page_is_left && usize::try_from(end.n).is_ok_and(|n| n < PAGE);
                let mut now = TableWalk { after, is_over, found: walk.found };
                if keys.is_empty() {
                    return Ok(now);
                }
                now.found += if rename {
                    transaction(conn, async |conn| renamed(conn, &search, &keys).await).await?
                } else {
                    let rows = search.rows(conn, &keys, false).await?;
                    rows.iter().filter(|row| search.renaming(row).is_some()).count() as u64
                };
                Ok(now)
            })
            .await
    }
}

/// Renames the buyer in these rows; returns how many there are.
async fn renamed(conn: &mut Conn, search: &Search<'_>, keys: &[KeyRow]) -> Result<u64, DbError> {
    let rows = search.rows(conn, keys, true).await?;
    let statements: Vec<String> = rows.iter().filter_map(|row| search.renaming(row)).collect();
    for statement in &statements {
        conn.batch_execute(statement).await?;
    }
    Ok(statements.len() as u64)
}
