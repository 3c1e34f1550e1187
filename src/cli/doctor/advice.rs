//! Why a setting matters and what to change: the texts of `seckill doctor`, by the name of the check.

/// Why it matters, what to do, and whether a guarantee breaks without it.
pub(super) struct Advice {
    pub why: &'static str,
    pub change: &'static str,
    pub required: bool,
}

/// About a setting of Redis; the check itself says why it matters.
pub(super) fn redis(name: &str) -> &'static str {
    match name {
        "maxmemory-policy" => "CONFIG SET maxmemory-policy noeviction, and the same in redis.conf",
        "appendonly" => "CONFIG SET appendonly yes, and the same in redis.conf",
        "appendfsync" => {
            "CONFIG SET appendfsync always, and the same in redis.conf; it groups one fsync per event-loop turn"
        }
        "min-replicas-to-write" => {
            "CONFIG SET min-replicas-to-write to redis.wait_replicas, and the same in redis.conf"
        }
        "redis.wait_replicas" => "set redis.wait_replicas to the number of replicas of each primary, in all processes",
        "cluster-require-full-coverage" => {
            "CONFIG SET cluster-require-full-coverage no on each server, and the same in redis.conf"
        }
        "cluster_state" => "bring the lost primary or one of its replicas back; redis-cli --cluster check ADDRESS",
        "cluster_size" => "add primaries: redis-cli --cluster add-node, then rebalance",
        "connected replicas" => "start the replicas, or lower redis.wait_replicas",
        "no-appendfsync-on-rewrite" => "CONFIG SET no-appendfsync-on-rewrite no, and the same in redis.conf",
        _ => "",
    }
}

/// About a check of the database.
pub(super) fn mysql(name: &str) -> Advice {
    let (why, change, required) = match name {
        "innodb_flush_log_at_trx_commit" => (
            "an order that was acknowledged to the broker must survive a crash of the database",
            "SET GLOBAL innodb_flush_log_at_trx_commit = 1, and the same in my.cnf",
            true,
        ),
        "sync_binlog" => (
            "after a crash replicas and backups could lack orders that were acknowledged",
            "SET GLOBAL sync_binlog = 1, and the same in my.cnf",
            true,
        ),
        "read_only" | "super_read_only" => (
            "nothing can be landed on a read-only server; it may be a replica after a failover",
            "point mysql.url at the primary",
            true,
        ),
        "innodb_doublewrite" => {
            ("a torn page after a power failure would lose orders", "innodb_doublewrite = ON in my.cnf, restart", true)
        }
        "binlog_format" => (
            "our sessions read committed rows, and statements of theirs cannot be logged as such: nothing can be written",
            "SET GLOBAL binlog_format = 'ROW', and the same in my.cnf",
            true,
        ),
        "max_allowed_packet" => (
            "a landing group is one statement; smaller groups land slower and one may not fit",
            "SET GLOBAL max_allowed_packet = 16777216, and the same in my.cnf",
            false,
        ),
        "id columns that are not VARBINARY" => (
            "ids compared with a collation let two buyers collide",
            "restore the column types of migrations/; seckill migrate does not repair what was altered by hand",
            true,
        ),
        "ck_sales_stock" => (
            "the last net against overselling: stock may not go below zero",
            "ALTER TABLE sales ADD CONSTRAINT ck_sales_stock CHECK (stock >= 0)",
            true,
        ),
        _ => return of_session(name),
    };
    Advice { why, change, required }
}

/// About what our sessions have, whatever the server's defaults are.
fn of_session(name: &str) -> Advice {
    let (why, change, required) = match name {
        "settings of the session" => (
            "with other values commits are not made, repairs are refused, or rows are left out of answers",
            "seckill sets them for its own sessions; a proxy must not change them, nor keep them from the server",
            true,
        ),
        "SHOW VARIABLES" => (
            "rows were cut off the answer, so nothing can be said of the settings, and other answers may lack rows, too",
            "let the account and any proxy read the whole answer; then run doctor again",
            true,
        ),
        "sql_mode" => (
            "without strict mode a value that does not fit is cut instead of refused",
            "seckill sets it for its own sessions; a proxy must not change it",
            true,
        ),
        "transaction isolation" => (
            "a repeated read that sees an old snapshot takes a landed request for a new one",
            "seckill sets it for its own sessions; a proxy must not change it",
            true,
        ),
        _ => return of_cluster(name),
    };
    Advice { why, change, required }
}

/// About what a database promises together with others.
fn of_cluster(name: &str) -> Advice {
    let (why, change, required) = match name {
        "wsrep_cluster_status" => (
            "this node has lost the majority: it takes no orders",
            "bring the other nodes back; after all were away, start the one that was the last as a new cluster",
            true,
        ),
        "wsrep_local_state_comment" => (
            "this node is behind the others, or gives its data to one: it may refuse or slow orders down",
            "wait until it is Synced, or let the roles use another node",
            false,
        ),
        "wsrep_cluster_size" => (
            "the loss of one more node may leave no majority, and then nothing lands",
            "bring the missing nodes back",
            false,
        ),
        "wsrep_sync_wait" => (
            "a read on another node could miss an order that was just committed",
            "seckill sets it for its own sessions; a proxy must not change it",
            true,
        ),
        "semi-synchronous replication" => (
            "commits wait for no replica now: a fail-over loses the last ones, and P5 lands their orders again",
            "start the replica with semi-synchronous replication; the server goes back to it by itself",
            false,
        ),
        _ => ("a guarantee depends on it", "", true),
    };
    Advice { why, change, required }
}
