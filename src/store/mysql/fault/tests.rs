//! Texts of both servers, and their class.

use super::*;

#[test]
fn the_violated_key_is_found_in_both_servers_texts_whatever_the_entry_holds() {
    assert_eq!(key_of("Duplicate entry 's-u' for key 'uk_sale_user'"), "uk_sale_user");
    assert_eq!(key_of("Duplicate entry 's-u' for key 'orders.uk_sale_user'"), "uk_sale_user");
    assert_eq!(key_of("Duplicate entry '7' for key 'request_outcome.PRIMARY'"), "PRIMARY");
    assert_eq!(key_of("Duplicate entry 'it's for key 'x.y'' for key 'PRIMARY'"), "PRIMARY");
}

/// Texts, with the servers' own codes, and the class that each of them has.
fn all_are(texts: &[(u16, &str)], is_of_class: fn(&DbError) -> bool) {
    for (code, text) in texts {
        assert!(is_of_class(&by_text(text)), "{code}: {text}");
    }
}

/// Texts by code: those of MariaDB are also provoked on a real server in the integration tests.
#[test]
fn the_texts_of_both_servers_have_the_same_class() {
    let unavailable = [
        (1021, "Disk full (/tmp/#sql); waiting for someone to free some space..."),
        (1030, "Got error 28 \"No space left on device\" from storage engine InnoDB"),
        (1030, "Got error 28 - 'No space left on device' from storage engine"),
        (1040, "Too many connections"),
        (1053, "Server shutdown in progress"),
        (1114, "The table 'orders' is full"),
        (1142, "INSERT command denied to user 'app'@'127.0.0.1' for table `a`.`orders`"),
        (1146, "Table 'a.orders' doesn't exist"),
        (1180, "Got error 149 during COMMIT"),
        (1180, "Got error 6 \"No such device or address\" during COMMIT"),
        (1598, "Binary logging not possible. Message: Either disk is full or file system is read only"),
        (1637, "Too many active concurrent transactions"),
        (
            1665,
            "Cannot execute statement: impossible to write to binary log since BINLOG_FORMAT = STATEMENT and at least one \
             table uses a storage engine limited to row-based logging.",
        ),
        (1927, "Connection was killed"),
        (3169, "Session was killed"),
        (
            4031,
            "The client was disconnected by the server because of inactivity. See wait_timeout and interactive_timeout \
             for configuring this behavior.",
        ),
        (0, "Input/output error: Broken pipe (os error 32)"),
        (0, "Driver error: `Connection to the server is closed.'"),
    ];
    all_are(&unavailable, |error| matches!(error, DbError::Unavailable(_)));
    let timeout = [
        (1317, "Query execution was interrupted"),
        (1969, "Query execution was interrupted (max_statement_time exceeded)"),
        (3024, "Query execution was interrupted, maximum statement execution time exceeded"),
    ];
    all_are(&timeout, |error| matches!(error, DbError::Timeout(_)));
    let wrong_node = [
        (1047, "WSREP has not yet prepared node for application use"),
        (1290, "The MariaDB server is running with the --read-only option so it cannot execute this statement"),
        (1290, "The MySQL server is running with the --super-read-only option so it cannot execute this statement"),
        (1792, "Cannot execute statement in a READ ONLY transaction"),
        (1836, "Running in read-only mode"),
        (3100, "Error on observer while running replication hook 'before_commit'."),
    ];
    all_are(&wrong_node, |error| matches!(error, DbError::WrongNode(_)));
    assert_eq!(by_text("Lock wait timeout exceeded; try restarting transaction"), DbError::LockWait, "1205");
}

#[test]
fn damaged_files_are_distinguished_from_bad_values() {
    let damaged = [
        (1034, "Index for table 'failed_request' is corrupt; try to repair it"),
        (1034, "Incorrect key file for table 'orders'; try to repair it"),
        (1030, "Got error 180 \"Index corrupted\" from storage engine InnoDB"),
        (1194, "Table 'orders' is marked as crashed and should be repaired"),
        (1712, "Index orders is corrupted"),
        (1812, "Tablespace is missing for table `seckill`.`orders`."),
        (1877, "Operation cannot be performed. The table 'seckill.orders' is missing, corrupt or contains bad data."),
        (1877, "Table seckill/orders corrupted. Please drop the table and recreate."),
        (1932, "Table 'seckill.orders' doesn't exist in engine"),
    ];
    all_are(&damaged, |error| matches!(error, DbError::Damaged(_)));
}

#[test]
fn what_the_server_rolled_back_by_itself_is_tried_again() {
    let rolled_back = [
        (1020, "Record has changed since last read in table 'sales'"),
        (1213, "Deadlock found when trying to get lock; try restarting transaction"),
        (1213, "Deadlock: wsrep aborted transaction"),
        (1213, "WSREP detected deadlock/conflict and aborted the transaction. Try restarting the transaction"),
        (3101, "Plugin instructed the server to rollback the current transaction."),
    ];
    for (code, text) in rolled_back {
        assert_eq!(by_text(text), DbError::Deadlock, "{code}: {text}");
    }
}

#[test]
fn errors_about_a_value_and_the_unknown_are_never_taken_for_anything_else() {
    let other = [
        (1264, "Out of range value for column 'quantity' at row 1"),
        (1292, "Incorrect datetime value: 'Deadlock found'"),
        (1292, "Truncated incorrect DOUBLE value: 'Deadlock found'"),
        (1366, "Incorrect string value: 'Too many connections' for column `a`.`orders`.`user_id` at row 1"),
        (1406, "Data too long for column 'detail' at row 1"),
        (3819, "Check constraint 'ck_sales_stock' is violated."),
        (4025, "CONSTRAINT `ck_sales_stock` failed for `a`.`sales`"),
        (9999, "something new"),
    ];
    all_are(&other, |error| matches!(error, DbError::Other(_)));
}
