//! Checks of settings against answers as servers give them.

use super::{EVERYWHERE, Variable, doublewrite_mends_pages, of_cluster, of_disk, of_session, short_answer};

#[test]
fn an_answer_without_some_rows_is_called_that() {
    let row = |name: &str| Variable { name: name.to_owned(), value: "x".to_owned() };
    let mut rows: Vec<Variable> = EVERYWHERE.iter().map(|name| row(name)).collect();
    assert_eq!(short_answer(&rows), None);
    rows.retain(|row| row.name != "sql_mode");
    let short = short_answer(&rows).unwrap();
    assert!(!short.ok && short.value == "an answer without sql_mode", "{short:?}");
}

#[test]
fn a_session_that_is_not_as_it_was_set_up_is_named() {
    let of = |has: &'static [(&str, &str)]| {
        move |name: &str| {
            has.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned()).unwrap_or_default()
        }
    };
    assert!(of_session(&of(&[("autocommit", "ON"), ("tx_read_only", "OFF")])).ok);
    let other = of_session(&of(&[("autocommit", "OFF"), ("transaction_read_only", "ON")]));
    assert!(!other.ok && other.value == "autocommit is OFF, transaction_read_only is ON", "{other:?}");
}

#[test]
fn statements_in_the_binary_log_are_wrong_where_there_is_one() {
    for (log_bin, format, ok) in
        [("ON", "STATEMENT", false), ("ON", "MIXED", true), ("ON", "", true), ("OFF", "STATEMENT", true)]
    {
        let value = |name: &str| match name {
            "log_bin" => log_bin.to_owned(),
            "binlog_format" => format.to_owned(),
            _ => String::new(),
        };
        let wrong = of_disk(&value).iter().any(|check| check.name == "binlog_format" && !check.ok);
        assert_eq!(wrong, !ok, "{log_bin} {format}");
    }
}

#[test]
fn a_galera_node_and_its_settings_are_judged_by_what_they_promise() {
    let bad = |changed: (&str, &str)| {
        let value = |name: &str| {
            let whole = [
                ("wsrep_on", "ON"),
                ("wsrep_cluster_status", "Primary"),
                ("wsrep_local_state_comment", "Synced"),
                ("wsrep_cluster_size", "3"),
                ("wsrep_sync_wait", "1"),
            ];
            let found = std::iter::once(changed).chain(whole).find(|(known, _)| *known == name);
            found.map(|(_, value)| value.to_owned()).unwrap_or_default()
        };
        let checks = of_cluster(&value);
        checks.into_iter().filter(|check| !check.ok).map(|check| check.name).collect::<Vec<_>>()
    };
    assert_eq!(bad(("", "")), [""; 0]);
    assert_eq!(bad(("wsrep_on", "OFF")), [""; 0], "no node of a cluster");
    assert_eq!(bad(("wsrep_sync_wait", "7")), [""; 0], "reads wait, and more");
    for (name, value) in [
        ("wsrep_cluster_status", "non-Primary"),
        ("wsrep_local_state_comment", "Donor/Desynced"),
        ("wsrep_cluster_size", "2"),
        ("wsrep_sync_wait", "0"),
    ] {
        assert_eq!(bad((name, value)), [name], "{value}");
    }
}

#[test]
fn a_doublewrite_that_only_detects_a_torn_page_mends_none() {
    // MariaDB; MySQL before 8.0.30; MySQL since.
    for mends in ["ON", "1", "DETECT_AND_RECOVER"] {
        assert!(doublewrite_mends_pages(mends), "{mends}");
    }
    for weak in ["OFF", "0", "DETECT_ONLY"] {
        assert!(!doublewrite_mends_pages(weak), "{weak}");
    }
}
