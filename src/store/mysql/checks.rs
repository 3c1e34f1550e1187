//! Server settings that a guarantee depends on (windows 72, 73, 82, 83). Read only; what a failed check means is the caller's.

use super::fault::DbError;
use super::pool::Db;
use diesel::QueryResult;
use diesel::sql_types::{BigInt, Text};
use diesel_async::{AsyncMysqlConnection, RunQueryDsl};
use std::collections::HashMap;

/// One setting, what it is and what it should be.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Check {
    /// Name of the variable, or of the checked property.
    pub name: &'static str,
    /// What the server says.
    pub value: String,
    /// What the guarantees need.
    pub expected: &'static str,
    /// Whether they agree.
    pub ok: bool,
}

/// Checks of the tables; the others are of the server.
pub(crate) const OF_TABLES: [&str; 2] = ["id columns that are not VARBINARY", "ck_sales_stock"];

#[derive(diesel::QueryableByName)]
struct Variable {
    #[diesel(sql_type = Text, column_name = "Variable_name")]
    name: String,
    #[diesel(sql_type = Text, column_name = "Value")]
    value: String,
}

#[derive(diesel::QueryableByName)]
struct CountRow {
    #[diesel(sql_type = BigInt)]
    found: i64,
}

const VARIABLES: &str = "SHOW VARIABLES WHERE Variable_name IN ('innodb_flush_log_at_trx_commit', 'sync_binlog', \
    'log_bin', 'binlog_format', 'autocommit', 'completion_type', 'sql_safe_updates', 'sql_select_limit', 'unique_checks', \
    'transaction_read_only', 'tx_read_only', 'read_only', 'super_read_only', 'sql_mode', 'innodb_doublewrite', 'max_allowed_packet', \
    'transaction_isolation', 'tx_isolation', 'version', 'wsrep_on', 'wsrep_sync_wait', \
    'rpl_semi_sync_master_enabled', 'rpl_semi_sync_source_enabled')";

/// Variables that each server has.
const EVERYWHERE: [&str; 5] =
    ["version", "read_only", "sql_mode", "max_allowed_packet", "innodb_flush_log_at_trx_commit"];

/// What our sessions set (`database_server.rs`) and a proxy may keep from the server: names, of which a server has one, and values.
const OF_SESSION: [(&[&str], &str); 6] = [
    (&["autocommit"], "ON"),
    (&["completion_type"], "NO_CHAIN"),
    (&["sql_safe_updates"], "OFF"),
    (&["sql_select_limit"], "18446744073709551615"),
    (&["unique_checks"], "ON"),
    (&["transaction_read_only", "tx_read_only"], "OFF"),
];

/// What the server says of the others: Galera's view of its cluster, and who acknowledges commits.
const STATUS: &str = "SHOW GLOBAL STATUS WHERE Variable_name IN ('wsrep_cluster_status', 'wsrep_cluster_size', \
    'wsrep_local_state_comment', 'Rpl_semi_sync_master_status', 'Rpl_semi_sync_source_status', \
    'Rpl_semi_sync_master_clients', 'Rpl_semi_sync_source_clients')";

/// Nodes of a Galera cluster that can lose one and go on.
const GALERA_NODES: u32 = 3;

/// Id columns that are compared byte for byte; `(table, column)`.
const ID_COLUMNS: &str = "SELECT COUNT(*) AS found FROM information_schema.columns WHERE table_schema = DATABASE() \
    AND table_name IN ('sales', 'orders', 'purchases', 'request_outcome', 'failed_request') \
    AND column_name IN ('sale_id', 'user_id', 'one_per_user_id') AND data_type <> 'varbinary'";

const STOCK_CHECK: &str = "SELECT COUNT(*) AS found FROM information_schema.table_constraints \
    WHERE table_schema = DATABASE() AND table_name = 'sales' AND constraint_name = 'ck_sales_stock'";

/// Reads everything a guarantee depends on, as this program's own sessions see it.
pub async fn checks(db: &Db) -> Result<Vec<Check>, DbError> {
    let (mut variables, status, folding_ids, stock_checks) = db
        .run("checks", async |conn| {
            let variables: Vec<Variable> = diesel::sql_query(VARIABLES).load(conn).await?;
            let status: Vec<Variable> = diesel::sql_query(STATUS).load(conn).await?;
            let folding: CountRow = diesel::sql_query(ID_COLUMNS).get_result(conn).await?;
            let stock: CountRow = diesel::sql_query(STOCK_CHECK).get_result(conn).await?;
            Ok((variables, status, folding.found, stock.found))
        })
        .await?;
    if let Some(short) = short_answer(&variables) {
        return Ok(vec![short]);
    }
    variables.extend(status);
    let variables: HashMap<String, String> = variables.into_iter().map(|v| (v.name, v.value)).collect();
    let value = |name: &str| variables.get(name).cloned().unwrap_or_default();
    let mut checks = of_disk(&value);
    checks.push(is(&value, "read_only", "OFF"));
    if variables.contains_key("super_read_only") {
        checks.push(is(&value, "super_read_only", "OFF"));
    }
    let mode = value("sql_mode");
    checks.push(Check { name: "sql_mode", ok: mode.contains("STRICT_"), value: mode, expected: "strict" });
    // MySQL and newer MariaDB call it by the first name, older MariaDB by the second.
    let isolation = Some(value("transaction_isolation")).filter(|value| !value.is_empty());
    let isolation = isolation.unwrap_or_else(|| value("tx_isolation"));
    let committed = isolation == "READ-COMMITTED";
    checks.push(Check { name: "transaction isolation", ok: committed, value: isolation, expected: "READ-COMMITTED" });
    checks.push(of_session(&value));
    let packet = value("max_allowed_packet");
    let enough = packet.parse::<u64>().is_ok_and(|bytes| bytes >= 4 << 20);
    checks.push(Check { name: "max_allowed_packet", ok: enough, value: packet, expected: "4194304 or more" });
    checks.push(Check {
        name: "id columns that are not VARBINARY",
        ok: folding_ids == 0,
        value: folding_ids.to_string(),
        expected: "0",
    });
    checks.push(Check {
        name: "ck_sales_stock",
        ok: stock_checks == 1,
        value: if stock_checks == 1 { "present" } else { "missing" }.to_owned(),
        expected: "present",
    });
    checks.extend(of_cluster(&value));
    Ok(checks)
}

fn is(value: &impl Fn(&str) -> String, name: &'static str, expected: &'static str) -> Check {
    let value = value(name);
    Check { name, ok: value.eq_ignore_ascii_case(expected), value, expected }
}

/// An answer from which rows are missing: of it nothing can be said.
fn short_answer(variables: &[Variable]) -> Option<Check> {
    let missing = EVERYWHERE.iter().filter(|name| !variables.iter().any(|variable| variable.name == **name));
    let missing: Vec<&str> = missing.copied().collect();
    let value = format!("an answer without {}", missing.join(", "));
    let short = Check { name: "SHOW VARIABLES", value, expected: "one with every variable", ok: false };
    (!missing.is_empty()).then_some(short)
}

/// Whether the session is as it was set up.
fn of_session(value: &impl Fn(&str) -> String) -> Check {
    let other = OF_SESSION.iter().filter_map(|(names, expected)| {
        let (name, has) = names.iter().map(|name| (name, value(name))).find(|(_, has)| !has.is_empty())?;
        (has != *expected).then(|| format!("{name} is {has}"))
    });
    let other: Vec<String> = other.collect();
    let ok = other.is_empty();
    let value = if ok { "as seckill sets them".to_owned() } else { other.join(", ") };
    Check { name: "settings of the session", value, expected: "as seckill sets them", ok }
}

/// Whether a commit that was answered is on this server's disk, and whether the server takes what our sessions commit: also of a server that a fail-over would promote.
fn of_disk(value: &impl Fn(&str) -> String) -> Vec<Check> {
    let mut checks = vec![is(value, "innodb_flush_log_at_trx_commit", "1")];
    if value("log_bin").eq_ignore_ascii_case("ON") {
        checks.push(is(value, "sync_binlog", "1"));
        // Newer servers may have no such variable: they log rows.
        let format = value("binlog_format");
        let ok = !format.eq_ignore_ascii_case("STATEMENT");
        checks.push(Check { name: "binlog_format", ok, value: format, expected: "ROW or MIXED" });
    }
    let doublewrite = value("innodb_doublewrite");
    checks.push(Check {
        name: "innodb_doublewrite",
        ok: doublewrite_mends_pages(&doublewrite),
        value: doublewrite,
        expected: "on",
    });
    checks
}

/// The same, read on a connection of its own: of one server of several.
pub(crate) async fn of_server(conn: &mut AsyncMysqlConnection) -> QueryResult<Vec<Check>> {
    let variables: Vec<Variable> = diesel::sql_query(VARIABLES).load(conn).await?;
    let variables: HashMap<String, String> = variables.into_iter().map(|v| (v.name, v.value)).collect();
    Ok(of_disk(&|name: &str| variables.get(name).cloned().unwrap_or_default()))
}

/// What holds only together with other servers: of a Galera node its cluster, with semi-synchronous replication its replicas.
fn of_cluster(value: &impl Fn(&str) -> String) -> Vec<Check> {
    let is_on = |name: &str| ["ON", "1"].iter().any(|on| value(name).eq_ignore_ascii_case(on));
    let mut checks = Vec::new();
    if is_on("wsrep_on") {
        checks.extend([is(value, "wsrep_cluster_status", "Primary"), is(value, "wsrep_local_state_comment", "Synced")]);
        let size = value("wsrep_cluster_size");
        let ok = size.parse::<u32>().is_ok_and(|nodes| nodes >= GALERA_NODES);
        checks.push(Check { name: "wsrep_cluster_size", value: size, expected: "3 or more", ok });
        let waits = value("wsrep_sync_wait");
        let ok = waits.parse::<u32>().is_ok_and(|mask| mask & 1 == 1);
        checks.push(Check { name: "wsrep_sync_wait", value: waits, expected: "1", ok });
    }
    // Newer MySQL says source where MariaDB says master.
    for (enabled, status, clients) in [
        ("rpl_semi_sync_master_enabled", "Rpl_semi_sync_master_status", "Rpl_semi_sync_master_clients"),
        ("rpl_semi_sync_source_enabled", "Rpl_semi_sync_source_status", "Rpl_semi_sync_source_clients"),
    ] {
        if is_on(enabled) {
            let (state, replicas) = (value(status), value(clients));
            let ok = is_on(status) && replicas.parse::<u32>().is_ok_and(|replicas| replicas > 0);
            let value = format!("{state}, {replicas} replicas");
            checks.push(Check { name: "semi-synchronous replication", value, expected: "ON, 1 replica or more", ok });
        }
    }
    checks
}

/// Whether a page that a power cut left half-written is mended. `DETECT_ONLY` (MySQL) finds such a page, and the server then
/// refuses to start.
fn doublewrite_mends_pages(value: &str) -> bool {
    !["OFF", "0", "DETECT_ONLY"].iter().any(|weak| value.eq_ignore_ascii_case(weak))
}

/// Which server answers, and what time it has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerIdentity {
    /// As the server reports it, e.g. `10.11.6-MariaDB-0+deb12u1` or `8.4.2`.
    pub version: String,
    /// Unix milliseconds by the server's clock.
    pub clock_ms: i64,
}

#[derive(diesel::QueryableByName)]
struct IdentityRow {
    #[diesel(sql_type = Text)]
    version: String,
    #[diesel(sql_type = BigInt)]
    clock_ms: i64,
}

/// Reads the server's version and its clock.
pub async fn identity(db: &Db) -> Result<ServerIdentity, DbError> {
    let row: IdentityRow = db
        .run("identity", async |conn| {
            let query = "SELECT VERSION() AS version, CAST(UNIX_TIMESTAMP(NOW(3)) * 1000 AS SIGNED) AS clock_ms";
            Ok(diesel::sql_query(query).get_result(conn).await?)
        })
        .await?;
    Ok(ServerIdentity { version: row.version, clock_ms: row.clock_ms })
}

#[cfg(test)]
mod tests;
