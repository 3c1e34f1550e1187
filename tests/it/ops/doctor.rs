//! `seckill doctor` without any server.

use crate::support::processes::doctor::doctor;

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
