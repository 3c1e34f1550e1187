//! Brings the schema up to date. Input: `migrations/`, compiled in. A crash leaves the statements that were done; the next
//! run goes on from there, because each migration is one statement.

use super::address::DatabaseAddress;
use super::fault::DbError;
use super::pool::{Conn, Db};
use diesel::migration::MigrationSource;
use diesel::mysql::Mysql;
use diesel::sql_types::{BigInt, Integer, Nullable, Text};
use diesel_async::{AsyncMigrationHarness, RunQueryDsl};
use diesel_migrations::{EmbeddedMigrations, MigrationHarness, embed_migrations};
use percent_encoding::percent_decode_str;
use std::time::Duration;
use url::Url;

const MIGRATIONS: EmbeddedMigrations = embed_migrations!("migrations");
/// How long a second process waits for the first one's migrations.
const LOCK_WAIT_S: i32 = 60;
/// A process that is silent for this long between two migrations loses the lock: the server ends its session.
const IDLE_S: u32 = 30;
/// Longest wait for the whole, locks included; a full table copy by ALTER may take a while.
const DEADLINE: Duration = Duration::from_secs(600);

#[derive(diesel::QueryableByName)]
struct Locked {
    #[diesel(sql_type = Nullable<Integer>)]
    locked: Option<i32>,
}

/// Creates the database when it is missing and runs the migrations that are missing. Returns the names of those it ran.
///
/// Safe to call any number of times and from several processes at once. Works on any Tokio runtime.
pub async fn migrate(address: impl Into<DatabaseAddress>) -> Result<Vec<String>, DbError> {
    match tokio::time::timeout(DEADLINE, migrate_locked(&address.into())).await {
        Ok(result) => result,
        Err(_elapsed) => Err(DbError::Timeout("migrations took longer than 10 minutes".to_owned())),
    }
}

async fn migrate_locked(address: &DatabaseAddress) -> Result<Vec<String>, DbError> {
    let mut conn = match address.establish().await {
        Ok(established) => established.conn,
        Err(error) if error.to_string().contains("Unknown database") => {
            create_database(address).await?;
            address.establish().await?.conn
        }
        Err(error) => return Err(error.into()),
    };
    diesel::sql_query(format!("SET SESSION wait_timeout = {IDLE_S}")).execute(&mut conn).await?;
    // The lock lives as long as the connection: dropping the harness, or dying, releases it.
    let lock: Locked =
        diesel::sql_query("SELECT GET_LOCK(CONCAT('seckill.migrate.', LEFT(SHA2(DATABASE(), 256), 40)), ?) AS locked")
            .bind::<Integer, _>(LOCK_WAIT_S)
            .get_result(&mut conn)
            .await?;
    if lock.locked != Some(1) {
        return Err(DbError::Timeout("another process has been migrating for a minute, try again".to_owned()));
    }
    // This works for an account that may not create tables.
    if missing(&mut conn).await?.is_empty() {
        return Ok(Vec::new());
    }
    // The harness blocks its thread; on a blocking thread it may, whatever the runtime's flavour.
    let ran = tokio::task::spawn_blocking(move || {
        let mut harness = AsyncMigrationHarness::new(conn);
        let ran = harness.run_pending_migrations(MIGRATIONS);
        ran.map(|versions| versions.iter().map(ToString::to_string).collect()).map_err(|error| error.to_string())
    });
    match ran.await {
        Ok(ran) => ran.map_err(|error| DbError::Other(format!("migration failed: {error}"))),
        Err(error) => Err(DbError::Other(format!("migration failed: {error}"))),
    }
}

#[derive(diesel::QueryableByName)]
struct AppliedVersion {
    #[diesel(sql_type = Text)]
    version: String,
}

#[derive(diesel::QueryableByName)]
struct AppliedCount {
    #[diesel(sql_type = BigInt)]
    count: i64,
}

/// Names of the migrations that this build needs and the database does not have. Changes nothing.
pub(crate) async fn pending(db: &Db) -> Result<Vec<String>, DbError> {
    db.run("migrations_applied", async |conn| missing(conn).await).await
}

async fn missing(conn: &mut Conn) -> Result<Vec<String>, DbError> {
    const TABLE: &str = "SELECT table_name AS version FROM information_schema.tables \
                         WHERE table_schema = DATABASE() AND table_name = '__diesel_schema_migrations'";
    let mut applied: Vec<AppliedVersion> = diesel::sql_query(TABLE).load(conn).await?;
    if !applied.is_empty() {
        applied = diesel::sql_query("SELECT version FROM __diesel_schema_migrations").load(conn).await?;
        let count: AppliedCount =
            diesel::sql_query("SELECT COUNT(*) AS count FROM __diesel_schema_migrations").get_result(conn).await?;
        if usize::try_from(count.count) != Ok(applied.len()) {
            return Err(DbError::Other(format!(
                "{} of {} rows of __diesel_schema_migrations are in the answer: a proxy, or sql_select_limit, cuts answers",
                applied.len(),
                count.count
            )));
        }
    }
    let known = MigrationSource::<Mysql>::migrations(&MIGRATIONS);
    let known = known.map_err(|error| DbError::Other(format!("migrations of this build: {error}")))?;
    let names = known.iter().map(|migration| migration.name());
    let missing = names.filter(|name| !applied.iter().any(|done| name.version() == done.version.as_str().into()));
    Ok(missing.map(ToString::to_string).collect())
}

async fn create_database(address: &DatabaseAddress) -> Result<(), DbError> {
    let name = split_url(address.url()).map(|(_, name)| name);
    let servers = address.map(|url| split_url(url).map(|(server, _)| server));
    let (Some(name), Some(servers)) = (name, servers) else {
        return Err(DbError::Other("mysql.url names no database, write mysql://…/seckill".to_owned()));
    };
    let mut conn = servers.establish().await?.conn;
    let quoted = name.replace('`', "``");
    diesel::sql_query(format!("CREATE DATABASE IF NOT EXISTS `{quoted}` CHARACTER SET utf8mb4 COLLATE utf8mb4_bin"))
        .execute(&mut conn)
        .await?;
    Ok(())
}

/// The URL without its database, and the database's name.
fn split_url(url: &str) -> Option<(String, String)> {
    let mut server = Url::parse(url).ok()?;
    let name = percent_decode_str(server.path().strip_prefix('/')?).decode_utf8().ok()?.into_owned();
    server.set_path("/");
    if name.is_empty() { None } else { Some((server.into(), name)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_database_is_cut_out_of_the_url() {
        let split = split_url("mysql://u:p@h:1/seck%20ill?prefer_socket=false").unwrap();
        assert_eq!(split, ("mysql://u:p@h:1/?prefer_socket=false".to_owned(), "seck ill".to_owned()));
        assert!(split_url("mysql://u:p@h:1").is_none());
        assert!(split_url("mysql://u:p@h:1/").is_none());
    }
}
