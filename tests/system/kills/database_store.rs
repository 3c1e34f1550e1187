//! The store for MySQL/MariaDB on a server that dies, hangs or refuses.

use crate::support::world::fault_injection::breakable_servers;
use crate::support::world::parts::mysql_store::{assert_sound, class, config, crowd, rows, sale, session_of, verdicts};
use crate::support::world::{eventually, pause, run_waiting};
use diesel_async::{AsyncConnection, AsyncMysqlConnection, SimpleAsyncConnection};
use seckill::dev::ServerKind;
use seckill::domain::ids::RequestId;
use seckill::domain::outcome::{Outcome, Verdict};
use seckill::domain::policy::PurchasePolicy;
use seckill::store::mysql::codes::PersistSource;
use seckill::store::mysql::{Db, DbConfig, DbError, migrate};
use std::time::{Duration, Instant};

#[test]
fn a_killed_server_heals_without_a_new_pool_and_loses_nothing_it_confirmed() {
    run_waiting(async {
        let mut servers = breakable_servers().await;
        let url = servers.urls().mysql_url.replace("/seckill", "/store_killed");
        migrate::migrate(&url).await.unwrap();
        let db = Db::connect(config(url)).unwrap();
        rows(&db).sales.create(&sale("s", 1_000_000, PurchasePolicy::OnePerUser)).await.unwrap();
        let lander = {
            let db = db.clone();
            tokio::spawn(async move {
                let mut confirmed = 0u64;
                let mut outages = 0;
                let mut next = 1u64;
                while outages == 0 || confirmed < 3_000 {
                    let group = crowd("s", next..=next + 49);
                    let got = rows(&db).persister.persist_all(&group, PersistSource::Relay).await;
                    if got.iter().all(Result::is_ok) {
                        confirmed += 50;
                        next += 50;
                    } else {
                        outages += 1;
                        assert!(got.iter().all(|v| v.as_ref().is_ok_or_outage()), "{got:?}");
                        pause().await;
                    }
                    assert!(outages < 2_000, "never healed");
                }
                confirmed
            })
        };
        eventually("orders", async || {
            rows(&db).requests.outcome_of(RequestId::new(500).unwrap()).await.unwrap().is_some()
        })
        .await;
        servers.server(ServerKind::Mysql).unwrap().kill().await.unwrap();
        eventually("an outage seen by the others", async || db.ping().await.is_err()).await;
        servers.server(ServerKind::Mysql).unwrap().restart().await.unwrap();
        let back = Instant::now();
        while db.ping().await.is_err() {
            assert!(back.elapsed() < Duration::from_secs(5));
            pause().await;
        }
        let confirmed = lander.await.unwrap();
        assert_sound(&db, "s", i64::try_from(confirmed).unwrap()).await;
    });
}

trait OkOrOutage {
    fn is_ok_or_outage(&self) -> bool;
}

impl OkOrOutage for Result<&Verdict, &DbError> {
    fn is_ok_or_outage(&self) -> bool {
        self.is_ok() || self.is_err_and(DbError::is_outage)
    }
}

#[test]
fn a_server_that_hangs_is_a_timeout_and_heals() {
    run_waiting(async {
        let mut servers = breakable_servers().await;
        let url = servers.urls().mysql_url.replace("/seckill", "/store_hung");
        migrate::migrate(&url).await.unwrap();
        let db = Db::connect(DbConfig { statement_timeout_ms: 500, connect_timeout_ms: 500, ..config(url) }).unwrap();
        rows(&db).sales.create(&sale("s", 1_000, PurchasePolicy::OnePerUser)).await.unwrap();
        servers.server(ServerKind::Mysql).unwrap().pause().unwrap();
        let started = Instant::now();
        let items = crowd("s", 1..=100);
        let got = rows(&db).persister.persist_all(&items, PersistSource::Relay).await;
        assert!(got.iter().all(|v| v.as_ref().is_err_and(DbError::is_outage)), "{got:?}");
        assert!(started.elapsed() < Duration::from_secs(4), "{:?}", started.elapsed());
        servers.server(ServerKind::Mysql).unwrap().resume().unwrap();
        let got = verdicts(&db, &items).await;
        assert!(got.iter().all(|v| matches!(v, Verdict::Ordered | Verdict::Already(Outcome::Ordered))));
        assert_sound(&db, "s", 100).await;
    });
}

#[test]
fn errors_of_the_whole_server_have_their_class() {
    run_waiting(async {
        let servers = breakable_servers().await;
        let url = servers.urls().mysql_url.replace("/seckill", "/store_classes");
        migrate::migrate(&url).await.unwrap();
        let mut root = session_of(&url).await;
        let user = "DROP USER IF EXISTS 'plain'@'127.0.0.1'; CREATE USER 'plain'@'127.0.0.1' WITH MAX_USER_CONNECTIONS 1; \
            GRANT SELECT, INSERT ON store_classes.* TO 'plain'@'127.0.0.1'; SET GLOBAL read_only = 1";
        root.batch_execute(user).await.unwrap();
        let plain = url.replace("root@", "plain@");
        let mut session = session_of(&plain).await;
        let refused = session.batch_execute("INSERT INTO purchases VALUES ('s', 'u', 1)").await.unwrap_err();
        assert!(matches!(DbError::from(refused), DbError::WrongNode(_)), "1290");
        root.batch_execute("SET GLOBAL read_only = 0").await.unwrap();
        let denied = DbError::from(session.batch_execute("DELETE FROM purchases").await.unwrap_err());
        assert_eq!(class(&denied), "unavailable", "1142: {denied}");
        let second = AsyncMysqlConnection::establish(&plain).await.err().expect("1203");
        assert!(matches!(DbError::from(second), DbError::Unavailable(_)));
        let wrong = AsyncMysqlConnection::establish(&url.replace("root@", "root:wrong@")).await.err().expect("1045");
        assert!(matches!(DbError::from(wrong), DbError::Unavailable(_)));
        let missing = AsyncMysqlConnection::establish(&url.replace("store_classes", "none")).await.err().expect("1049");
        assert!(matches!(DbError::from(missing), DbError::Unavailable(_)));
    });
}
