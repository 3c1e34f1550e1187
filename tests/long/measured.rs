//! Questions to the database, with how many rows and index entries each of them read.

use diesel::QueryableByName;
use diesel::sql_types::Text;
use diesel_async::RunQueryDsl;
use seckill::roles::DatabaseRows;
use seckill::store::mysql::{Db, DbError};
use std::time::Instant;

#[derive(QueryableByName)]
struct Counter {
    #[diesel(sql_type = Text, column_name = "Variable_name")]
    name: String,
    #[diesel(sql_type = Text, column_name = "Value")]
    value: String,
}

/// Rows and index entries that this session has read so far. The pool has one connection.
async fn read_so_far(db: &Db) -> u64 {
    let rows: Vec<Counter> = db
        .run("test_status", async |conn| {
            Ok(diesel::sql_query("SHOW SESSION STATUS LIKE 'Handler_read_%'").load(conn).await?)
        })
        .await
        .unwrap();
    let counted = |name: &str| !name.ends_with("_retry") && !name.ends_with("_deleted");
    rows.iter().filter(|row| counted(&row.name)).map(|row| row.value.parse::<u64>().unwrap()).sum()
}

/// What was measured of one question.
pub struct Asked {
    pub name: &'static str,
    pub answers: usize,
    pub read: u64,
    /// Rows and index entries that it may read.
    pub most: u64,
    pub first_ms: f64,
    pub again_ms: f64,
}

pub struct Measured {
    pub db: Db,
    pub tables: DatabaseRows,
    pub all: Vec<Asked>,
}

impl Measured {
    /// Asks twice: the first time pages may have to be read. `most`: what it may read.
    pub async fn ask(
        &mut self,
        name: &'static str,
        most: u64,
        question: impl AsyncFn(&DatabaseRows) -> Result<usize, DbError>,
    ) {
        let before = read_so_far(&self.db).await;
        let begun = Instant::now();
        let answers = question(&self.tables).await.unwrap_or_else(|error| panic!("{name}: {error}"));
        let first_ms = begun.elapsed().as_secs_f64() * 1000.0;
        let read = read_so_far(&self.db).await - before;
        let begun = Instant::now();
        question(&self.tables).await.unwrap_or_else(|error| panic!("{name}: {error}"));
        let again_ms = begun.elapsed().as_secs_f64() * 1000.0;
        eprintln!("{name:44} {answers:6} answers, {read:8} read, {first_ms:9.2} ms, again {again_ms:8.2} ms");
        self.all.push(Asked { name, answers, read, most, first_ms, again_ms });
    }
}
