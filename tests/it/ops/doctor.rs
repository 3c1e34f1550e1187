//! `seckill doctor` without any server, and with a database that is damaged.

use crate::support::processes::doctor::doctor;
use crate::support::world::{World, run};

#[test]
fn a_plain_connection_that_leaves_the_machine_is_a_warning() {
    let (code, found, text) = doctor(&[
        "redis.url=redis://elsewhere.invalid:1".to_owned(),
        "rabbitmq.url=amqp://guest:guest@elsewhere.invalid:1".to_owned(),
        "mysql.url=mysql://root@elsewhere.invalid:1/s".to_owned(),
    ]);
    assert_eq!(code, Some(1), "{text}");
    assert_eq!(found("warning"), ["redis connection", "rabbitmq connection", "mysql connection"], "{text}");
}

/// A database may start with a damaged file and serve until the table is needed.
#[test]
fn a_table_that_the_database_cannot_read_is_named() {
    run(async {
        let world = World::with(&[], &[]).await;
        assert!(world.cli(&["doctor"]).out.contains("tables that cannot be read"));
        world.sql("CREATE TABLE torn (id INT PRIMARY KEY) ENGINE = InnoDB; ALTER TABLE torn DISCARD TABLESPACE").await;
        let said = world.cli(&["doctor"]).exits(2);
        assert!(said.out.contains("torn: ") && said.out.contains("Tablespace has been discarded"), "{said:?}");
        world.sql("DROP TABLE torn").await;
        world.finish().await;
    });
}
