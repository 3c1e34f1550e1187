//! The store for MySQL/MariaDB against a real server: what lands lands once, whatever happens around it.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on has failed")]

use seckill::domain::fate::{FailReason, Fate, Verdict};
use seckill::domain::ids::{RequestId, SaleId, UserId};
use seckill::domain::policy::{PurchasePolicy, Quantity};
use seckill::domain::request::{Accepted, Purchase};
use seckill::domain::sale::{Sale, SaleStatus};
use seckill::store::mysql::codes::{FailureStatus, Reporter, Source};
use seckill::store::mysql::landing::{GroupResult, land, land_group, land_one};
use seckill::store::mysql::register::{OpenFailure, Wanted};
use seckill::store::mysql::sales::SaleError;
use seckill::store::mysql::totals::{Gap, Numbers};
use seckill::store::mysql::{
    Db, DbConfig, DbError, audit, checks, grants, leader, migrate, outcomes, register, sales, totals,
};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

const NOW_MS: i64 = 1_763_720_000_123;

/// A private mariadbd on a port of its own.
struct Server {
    dir: PathBuf,
    port: u16,
    child: Child,
}

impl Server {
    fn start(name: &str) -> Self {
        let dir = std::env::temp_dir().join(format!("skmy-{}-{name}", std::process::id()));
        std::fs::remove_dir_all(&dir).ok();
        std::fs::create_dir_all(&dir).unwrap();
        let data = format!("--datadir={}/data", dir.display());
        let mut install = Command::new("mariadb-install-db");
        install.args(["--no-defaults", &data, "--auth-root-authentication-method=normal", "--skip-test-db"]);
        install.args(as_root());
        let installed = install.stdout(Stdio::null()).stderr(Stdio::null()).status().unwrap();
        assert!(installed.success());
        let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let child = Self::spawn(&dir, port);
        let server = Self { dir, port, child };
        server.wait_ready();
        server
    }

    fn spawn(dir: &Path, port: u16) -> Child {
        let at = |name: &str, file: &str| format!("--{name}={}/{file}", dir.display());
        let mut command = Command::new("mariadbd");
        command.arg("--no-defaults").args([at("datadir", "data"), at("socket", "s"), at("pid-file", "pid")]);
        command.args([format!("--tmpdir={}", dir.display()), format!("--port={port}")]);
        command.args(["--bind-address=127.0.0.1", "--skip-name-resolve"]).args(as_root());
        command.stdout(Stdio::null()).stderr(std::fs::File::create(dir.join("log")).unwrap());
        // SAFETY: prctl is async-signal-safe; the child dies with the test process.
        unsafe {
            command.pre_exec(|| {
                libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
                Ok(())
            });
        }
        // The signal comes when the spawning *thread* ends, so that thread stays for ever.
        let (send, receive) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            send.send(command.spawn().unwrap()).unwrap();
            loop {
                std::thread::park();
            }
        });
        receive.recv().unwrap()
    }

    fn wait_ready(&self) {
        let started = Instant::now();
        while std::net::TcpStream::connect(("127.0.0.1", self.port)).is_err() {
            assert!(started.elapsed() < Duration::from_secs(20), "mariadbd did not start, see {}", self.dir.display());
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    fn kill_9(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    fn restart(&mut self) {
        self.child = Self::spawn(&self.dir, self.port);
        self.wait_ready();
    }

    fn url(&self, database: &str) -> String {
        format!("mysql://root@127.0.0.1:{}/{database}", self.port)
    }
}

fn as_root() -> Option<&'static str> {
    // SAFETY: geteuid has no preconditions.
    (unsafe { libc::geteuid() } == 0).then_some("--user=root")
}

fn server() -> &'static Server {
    static SERVER: OnceLock<Server> = OnceLock::new();
    extern "C" fn remove() {
        if let Some(server) = SERVER.get() {
            // SAFETY: the pid is our own child's, which nobody waited for.
            unsafe { libc::kill(i32::try_from(server.child.id()).unwrap(), libc::SIGKILL) };
            std::fs::remove_dir_all(&server.dir).ok();
        }
    }
    SERVER.get_or_init(|| {
        // SAFETY: the handler touches only the initialised static.
        unsafe { libc::atexit(remove) };
        Server::start("shared")
    })
}

fn config(url: String) -> DbConfig {
    DbConfig { url, pool_max: 16, wait_timeout_ms: 5_000, connect_timeout_ms: 3_000, statement_timeout_ms: 5_000 }
}

async fn fresh(name: &str) -> Db {
    let url = server().url(&format!("t_{name}"));
    migrate::migrate(&url).await.unwrap();
    Db::connect(config(url)).unwrap()
}

fn sale_id(text: &str) -> SaleId {
    SaleId::parse(text).unwrap()
}

fn sale(id: &str, stock: i64, policy: PurchasePolicy) -> Sale {
    Sale {
        sale_id: sale_id(id),
        product_id: "p-1".into(),
        title: "限量 title".into(),
        price_cents: 9_900,
        currency: "CNY".into(),
        granted: stock,
        stock,
        policy,
        token_required: true,
        starts_at_ms: NOW_MS,
        ends_at_ms: NOW_MS + 3_600_000,
        status: SaleStatus::Draft,
        epoch: 1,
    }
}

fn accepted(sale: &str, rid: u64, user: &str, quantity: u32) -> Accepted {
    Accepted {
        purchase: Purchase {
            request_id: RequestId::new(rid).unwrap(),
            sale_id: sale_id(sale),
            user_id: UserId::parse(user).unwrap(),
            quantity: Quantity::new(quantity).unwrap(),
        },
        shard: 0,
        epoch: 1,
        number: rid,
        accepted_at_ms: NOW_MS,
    }
}

fn crowd(sale: &str, rids: std::ops::RangeInclusive<u64>) -> Vec<Accepted> {
    rids.map(|rid| accepted(sale, rid, &format!("u{rid}"), 1)).collect()
}

async fn verdicts(db: &Db, items: &[Accepted]) -> Vec<Verdict> {
    land(db, items, Source::Relay).await.into_iter().map(Result::unwrap).collect()
}

/// Every equation that the database alone can answer.
async fn assert_sound(db: &Db, sale: &str, ordered: i64) {
    let totals = totals::totals(db, &sale_id(sale)).await.unwrap().unwrap();
    assert_eq!(totals.ordered, ordered, "{totals:?}");
    assert_eq!(totals.granted, totals.stock + totals.ordered, "{totals:?}");
    assert_eq!(totals.stock, totals.flow, "{totals:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn migrations_run_once_whoever_runs_them_and_the_server_is_checked() {
    let url = server().url("t_mi`gr%20ate");
    let racers: Vec<_> = (0..4)
        .map(|_| {
            let url = url.clone();
            tokio::spawn(async move { migrate::migrate(&url).await.unwrap().len() })
        })
        .collect();
    let ran = futures::future::join_all(racers).await;
    assert_eq!(ran.into_iter().map(Result::unwrap).sum::<usize>(), 9);
    assert!(migrate::migrate(&url).await.unwrap().is_empty());
    let db = Db::connect(config(url)).unwrap();
    let checks = checks::checks(&db).await.unwrap();
    assert!(checks.iter().all(|check| check.ok), "{checks:?}");
    assert!(checks.len() >= 7, "{checks:?}");
}

#[tokio::test]
async fn migrations_work_on_a_current_thread_runtime() {
    fresh("current_thread").await.ping().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_database_that_is_away_or_empty_is_an_error_not_a_panic() {
    let away = Db::connect(config("mysql://root@127.0.0.1:1/x".into())).unwrap();
    assert!(matches!(away.ping().await, Err(DbError::Unavailable(_))));
    assert!(matches!(migrate::migrate("mysql://root@127.0.0.1:1/x").await, Err(DbError::Unavailable(_))));
    let missing = Db::connect(config(server().url("t_nowhere"))).unwrap();
    assert!(matches!(missing.ping().await, Err(DbError::Unavailable(_))));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sale_round_trips_and_its_grants_are_idempotent() {
    let db = fresh("sales").await;
    let wanted = sale("s", 10, PurchasePolicy::from_limit(Some(3)));
    sales::create(&db, &wanted).await.unwrap();
    assert_eq!(sales::create(&db, &wanted).await, Err(SaleError::Exists(sale_id("s"))));
    assert_eq!(sales::get(&db, &sale_id("s")).await.unwrap(), Some(wanted.clone()));
    assert_eq!(sales::get(&db, &sale_id("S")).await.unwrap(), None);

    assert!(sales::live_sales(&db, NOW_MS).await.unwrap().is_empty());
    sales::set_status(&db, &sale_id("s"), SaleStatus::Warmed).await.unwrap();
    assert_eq!(sales::live_sales(&db, NOW_MS).await.unwrap().len(), 1);
    assert!(sales::live_sales(&db, NOW_MS + 3_600_001).await.unwrap().is_empty());
    assert_eq!(sales::set_epoch(&db, &sale_id("s"), 3).await, Ok(3));
    assert_eq!(sales::set_epoch(&db, &sale_id("s"), 2).await, Ok(3));
    assert_eq!(sales::set_epoch(&db, &sale_id("x"), 2).await, Err(SaleError::Unknown(sale_id("x"))));

    assert_eq!(grants::top_up(&db, &sale_id("s"), "g1", 5).await, Ok(true));
    assert_eq!(grants::top_up(&db, &sale_id("s"), "g1", 5).await, Ok(false));
    assert_eq!(grants::top_up(&db, &sale_id("s"), "g1", 6).await, Err(SaleError::GrantConflict("g1".into())));
    assert_eq!(grants::top_up(&db, &sale_id("x"), "g1", 6).await, Err(SaleError::Unknown(sale_id("x"))));
    assert_eq!(grants::top_up(&db, &sale_id("s"), "g2", 1_000_000_000).await, Err(SaleError::TooMuch(sale_id("s"))));
    let open: Vec<_> = grants::unapplied(&db, &sale_id("s")).await.unwrap();
    assert_eq!(open.iter().map(|g| (g.grant_id.as_str(), g.quantity)).collect::<Vec<_>>(), [("first", 10), ("g1", 5)]);
    assert!(grants::mark_applied(&db, &sale_id("s"), "first").await.unwrap());
    assert!(!grants::mark_applied(&db, &sale_id("s"), "first").await.unwrap());
    assert_eq!(grants::unapplied(&db, &sale_id("s")).await.unwrap().len(), 1);
    assert_sound(&db, "s", 0).await;
    let totals = totals::totals(&db, &sale_id("s")).await.unwrap().unwrap();
    assert_eq!((totals.granted, totals.granted_applied), (15, 10));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_group_lands_once_and_repeats_learn_their_fate() {
    let db = fresh("group").await;
    sales::create(&db, &sale("s", 1_000, PurchasePolicy::OnePerUser)).await.unwrap();
    let group = crowd("s", 1..=200);
    assert_eq!(land_group(&db, &group, Source::Relay).await, Ok(GroupResult::Landed));
    assert_eq!(land_group(&db, &group, Source::Relay).await, Ok(GroupResult::Surprise));
    assert_eq!(verdicts(&db, &group).await, vec![Verdict::Already(Fate::Ordered); 200]);

    let mut mixed = crowd("s", 200..=260);
    mixed.reverse();
    mixed.push(mixed[3].clone());
    let got = verdicts(&db, &mixed).await;
    assert_eq!(got.iter().filter(|v| **v == Verdict::Ordered).count(), 60);
    assert_eq!(got[60], Verdict::Already(Fate::Ordered));
    assert_eq!(got[61], Verdict::Already(Fate::Ordered));
    assert_sound(&db, "s", 260).await;
    assert_eq!(sales::highest_number(&db, &sale_id("s"), 0, 1).await, Ok(260));
    assert_eq!(sales::highest_number(&db, &sale_id("s"), 1, 1).await, Ok(0));

    let story = outcomes::story_of(&db, RequestId::new(7).unwrap()).await.unwrap();
    let order = story.order.unwrap();
    assert_eq!((order.amount_cents, order.accepted_at_ms, order.source.as_str()), (9_900, NOW_MS, "relay"));
    assert_eq!(story.decided.unwrap().payload_hash, group[6].payload_hash());
    assert!(story.failure.is_none());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_request_of_a_buyer_is_refused_and_that_is_recorded_first() {
    let db = fresh("buyer").await;
    sales::create(&db, &sale("s", 100, PurchasePolicy::OnePerUser)).await.unwrap();
    let items = [accepted("s", 1, "alice", 1), accepted("s", 2, "alice", 1), accepted("s", 3, "bob", 1)];
    let got = verdicts(&db, &items).await;
    let refused = Verdict::Refused(FailReason::DuplicateBuyer);
    assert_eq!(got, [Verdict::Ordered, refused, Verdict::Ordered]);
    let story = outcomes::story_of(&db, RequestId::new(2).unwrap()).await.unwrap();
    assert_eq!(story.decided.unwrap().fate, Fate::Failed(FailReason::DuplicateBuyer));
    let failure = story.failure.unwrap();
    assert_eq!((failure.status, failure.reason.as_str()), (FailureStatus::Final, "DUPLICATE_BUYER"));
    assert_eq!(seckill::domain::message::decode(&failure.payload).unwrap(), items[1]);
    assert!(story.order.is_none());
    // One unit each, also in one request.
    let two = accepted("s", 4, "carol", 2);
    assert_eq!(land_one(&db, &two, Source::Relay).await, Ok(Verdict::Refused(FailReason::LimitExceeded)));
    assert_eq!(verdicts(&db, &[two]).await, [Verdict::Already(Fate::Failed(FailReason::LimitExceeded))]);
    assert_sound(&db, "s", 2).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn ids_that_differ_by_case_or_spaces_are_different_buyers() {
    let db = fresh("bytes").await;
    sales::create(&db, &sale("s", 100, PurchasePolicy::OnePerUser)).await.unwrap();
    sales::create(&db, &sale("S", 100, PurchasePolicy::from_limit(Some(2)))).await.unwrap();
    let users = ["alice", "Alice", "alice ", "alicé", "alice\u{301}"];
    let mut items = Vec::new();
    for (n, user) in (1u64..).zip(users) {
        items.push(accepted("s", n, user, 1));
        items.push(accepted("S", n + 100, user, 2));
    }
    assert_eq!(verdicts(&db, &items).await, vec![Verdict::Ordered; 10]);
    assert_sound(&db, "s", 5).await;
    assert_sound(&db, "S", 10).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cumulative_limit_holds_within_and_across_groups() {
    let db = fresh("limit").await;
    sales::create(&db, &sale("s", 1_000, PurchasePolicy::from_limit(Some(5)))).await.unwrap();
    let refused = Verdict::Refused(FailReason::LimitExceeded);
    let first = [accepted("s", 1, "a", 2), accepted("s", 2, "a", 3), accepted("s", 3, "b", 5)];
    assert_eq!(land_group(&db, &first, Source::Relay).await, Ok(GroupResult::Landed));
    let second =
        [accepted("s", 4, "a", 1), accepted("s", 5, "b", 1), accepted("s", 6, "c", 6), accepted("s", 7, "c", 5)];
    assert_eq!(verdicts(&db, &second).await, [refused, refused, refused, Verdict::Ordered]);
    // Many landers, one buyer: exactly five units whatever the interleaving.
    let tasks: Vec<_> = (0..8u64)
        .map(|task| {
            let db = db.clone();
            tokio::spawn(async move { land_one(&db, &accepted("s", 100 + task, "d", 1), Source::Relay).await })
        })
        .collect();
    let mut ordered = 0;
    for task in tasks {
        ordered += i64::from(task.await.unwrap().unwrap() == Verdict::Ordered);
    }
    assert_eq!(ordered, 5);
    assert_sound(&db, "s", 20).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn short_stock_inside_a_group_sells_exactly_what_is_there() {
    let db = fresh("short").await;
    sales::create(&db, &sale("s", 37, PurchasePolicy::OnePerUser)).await.unwrap();
    sales::create(&db, &sale("t", 1_000, PurchasePolicy::Unlimited)).await.unwrap();
    let mut items = crowd("s", 1..=100);
    items.extend((101..=150).map(|rid| accepted("t", rid, "same", 3)));
    let got = verdicts(&db, &items).await;
    assert_eq!(got[..100].iter().filter(|v| **v == Verdict::Ordered).count(), 37);
    assert_eq!(got[..100].iter().filter(|v| **v == Verdict::Refused(FailReason::SoldOut)).count(), 63);
    assert_eq!(got[100..], vec![Verdict::Ordered; 50]);
    assert_sound(&db, "s", 37).await;
    assert_sound(&db, "t", 150).await;
    let again = verdicts(&db, &items).await;
    assert!(again.iter().all(|v| matches!(v, Verdict::Already(_))));
    // Units of final failures can be granted to Redis again, once each, and the database's sums do not move.
    assert_eq!(grants::reclaim(&db, &sale_id("s"), 10).await, Ok(10));
    assert_eq!(grants::reclaim(&db, &sale_id("s"), 1_000).await, Ok(53));
    assert_eq!(grants::reclaim(&db, &sale_id("s"), 1_000).await, Ok(0));
    assert_eq!(grants::unapplied(&db, &sale_id("s")).await.unwrap().len(), 64);
    assert_sound(&db, "s", 37).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn unknown_sales_forged_repeats_and_reused_numbers_are_told_apart() {
    let db = fresh("strange").await;
    sales::create(&db, &sale("s", 100, PurchasePolicy::OnePerUser)).await.unwrap();
    let unknown = accepted("nowhere", 1, "a", 1);
    let good = accepted("s", 2, "a", 1);
    let mut forged = accepted("s", 2, "mallory", 1);
    forged.number = 9;
    let mut reused = accepted("s", 3, "c", 1);
    reused.number = 2;
    let items = [unknown.clone(), good, forged, reused, accepted("s", 4, "d", 1)];
    let got = verdicts(&db, &items).await;
    let refused = Verdict::Refused(FailReason::UnknownSale);
    assert_eq!(got, [refused, Verdict::Ordered, Verdict::Conflict, Verdict::Conflict, Verdict::Ordered]);
    // A sale that is created later is not haunted by a cached absence, and the decided request stays decided.
    sales::create(&db, &sale("nowhere", 5, PurchasePolicy::Unlimited)).await.unwrap();
    assert_eq!(verdicts(&db, &[unknown]).await, [Verdict::Already(Fate::Failed(FailReason::UnknownSale))]);
    assert_eq!(verdicts(&db, &[accepted("nowhere", 10, "a", 1)]).await, [Verdict::Ordered]);
    assert_sound(&db, "s", 2).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn one_impossible_row_does_not_fail_its_neighbours() {
    let db = fresh("poison").await;
    sales::create(&db, &sale("s", 1_000, PurchasePolicy::OnePerUser)).await.unwrap();
    let mut items = crowd("s", 1..=100);
    items[57].accepted_at_ms = 253_402_300_800_000; // the year 10000
    items[12].accepted_at_ms = i64::MAX;
    let got = land(&db, &items, Source::Relay).await;
    for (at, verdict) in got.iter().enumerate() {
        match at {
            12 | 57 => assert!(matches!(verdict, Err(DbError::Other(_))), "{verdict:?}"),
            _ => assert_eq!(*verdict, Ok(Verdict::Ordered)),
        }
    }
    assert_sound(&db, "s", 98).await;
    let gaps = totals::gaps(&db, Numbers { sale_id: &sale_id("s"), shard: 0, epoch: 1, after: 0 }).await.unwrap();
    let found: Vec<_> = gaps.gaps.iter().map(|Gap { first, last, .. }| (*first, *last)).collect();
    assert_eq!((found, gaps.looked_to), (vec![(13, 13), (58, 58)], 100));
    let rest = totals::gaps(&db, Numbers { sale_id: &sale_id("s"), shard: 0, epoch: 1, after: 100 }).await.unwrap();
    assert_eq!((rest.gaps.len(), rest.looked_to), (0, 100));
}

#[tokio::test(flavor = "multi_thread")]
async fn concurrent_landers_of_the_same_requests_land_each_once() {
    let db = fresh("race").await;
    sales::create(&db, &sale("s", 10_000, PurchasePolicy::from_limit(Some(5)))).await.unwrap();
    let items: Vec<_> = (1..=200).map(|rid| accepted("s", rid, &format!("u{}", rid % 70), 1)).collect();
    let tasks: Vec<_> = (0..8)
        .map(|task| {
            let (db, mut items) = (db.clone(), items.clone());
            items.rotate_left(task * 25);
            tokio::spawn(async move {
                let mut got = Vec::new();
                for group in items.chunks(40 + task) {
                    got.extend(land(&db, group, Source::Relay).await);
                }
                got
            })
        })
        .collect();
    let mut ordered = 0;
    for task in tasks {
        for verdict in task.await.unwrap() {
            match verdict.unwrap() {
                Verdict::Ordered => ordered += 1,
                Verdict::Already(Fate::Ordered) => {}
                other @ (Verdict::Already(Fate::Failed(_)) | Verdict::Refused(_) | Verdict::Conflict) => {
                    panic!("{other:?}")
                }
            }
        }
    }
    assert_eq!(ordered, 200);
    assert_sound(&db, "s", 200).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn dropped_calls_never_lead_to_wrong_answers() {
    let db = fresh("dropped").await;
    sales::create(&db, &sale("s", 100_000, PurchasePolicy::OnePerUser)).await.unwrap();
    let landed = crowd("s", 1..=500);
    verdicts(&db, &landed).await;
    let asker = {
        let db = db.clone();
        tokio::spawn(async move {
            let mut asked = 0u32;
            for round in 0..20_000u64 {
                let rid = RequestId::new(round % 500 + 1).unwrap();
                let answer = outcomes::fate_of(&db, rid).await.unwrap().unwrap();
                assert_eq!((answer.request_id, answer.number), (rid, rid.get()));
                asked += 1;
                if asked >= 3_000 {
                    break;
                }
            }
        })
    };
    for n in 0..200u64 {
        let db = db.clone();
        let task = tokio::spawn(async move {
            loop {
                let group = crowd("s", 1_000 + n * 20..=1_019 + n * 20);
                land(&db, &group, Source::Relay).await;
                outcomes::fate_of(&db, RequestId::new(n + 1).unwrap()).await.ok();
            }
        });
        tokio::time::sleep(Duration::from_micros(300 + 37 * (n % 100))).await;
        task.abort();
    }
    asker.await.unwrap();
    let again = verdicts(&db, &crowd("s", 1_000..=4_999)).await;
    assert!(again.iter().all(|v| matches!(v, Verdict::Ordered | Verdict::Already(Fate::Ordered))));
    assert!(
        again.contains(&Verdict::Already(Fate::Ordered)),
        "some calls should have committed before they were dropped"
    );
    assert_sound(&db, "s", 4_500).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_server_heals_without_a_new_pool_and_loses_nothing_it_confirmed() {
    let mut server = Server::start("killed");
    let url = server.url("t");
    migrate::migrate(&url).await.unwrap();
    let db = Db::connect(config(url)).unwrap();
    sales::create(&db, &sale("s", 1_000_000, PurchasePolicy::OnePerUser)).await.unwrap();
    let lander = {
        let db = db.clone();
        tokio::spawn(async move {
            let mut confirmed = 0u64;
            let mut outages = 0;
            let mut next = 1u64;
            while outages == 0 || confirmed < 3_000 {
                let group = crowd("s", next..=next + 49);
                let got = land(&db, &group, Source::Relay).await;
                if got.iter().all(Result::is_ok) {
                    confirmed += 50;
                    next += 50;
                } else {
                    outages += 1;
                    assert!(got.iter().all(|v| v.as_ref().is_ok_or_outage()), "{got:?}");
                    tokio::time::sleep(Duration::from_millis(20)).await;
                }
                assert!(outages < 2_000, "never healed");
            }
            confirmed
        })
    };
    tokio::time::sleep(Duration::from_millis(300)).await;
    server.kill_9();
    tokio::time::sleep(Duration::from_millis(200)).await;
    server.restart();
    let back = Instant::now();
    while db.ping().await.is_err() {
        assert!(back.elapsed() < Duration::from_secs(5));
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    println!("healed {:?} after the server answered", back.elapsed());
    let confirmed = lander.await.unwrap();
    assert_sound(&db, "s", i64::try_from(confirmed).unwrap()).await;
    server.kill_9();
    std::fs::remove_dir_all(&server.dir).ok();
}

trait OkOrOutage {
    fn is_ok_or_outage(&self) -> bool;
}

impl OkOrOutage for Result<&Verdict, &DbError> {
    fn is_ok_or_outage(&self) -> bool {
        self.is_ok() || self.is_err_and(DbError::is_outage)
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_hangs_is_a_timeout_and_heals() {
    let mut server = Server::start("hung");
    let url = server.url("t");
    migrate::migrate(&url).await.unwrap();
    let db = Db::connect(DbConfig { statement_timeout_ms: 500, connect_timeout_ms: 500, ..config(url) }).unwrap();
    sales::create(&db, &sale("s", 1_000, PurchasePolicy::OnePerUser)).await.unwrap();
    let signal = |signal| {
        // SAFETY: the pid is our own child's, which nobody waited for.
        assert_eq!(unsafe { libc::kill(i32::try_from(server.child.id()).unwrap(), signal) }, 0);
    };
    signal(libc::SIGSTOP);
    let started = Instant::now();
    let items = crowd("s", 1..=100);
    let got = land(&db, &items, Source::Relay).await;
    assert!(got.iter().all(|v| v.as_ref().is_err_and(DbError::is_outage)), "{got:?}");
    assert!(started.elapsed() < Duration::from_secs(4), "{:?}", started.elapsed());
    signal(libc::SIGCONT);
    let got = verdicts(&db, &items).await;
    assert!(got.iter().all(|v| matches!(v, Verdict::Ordered | Verdict::Already(Fate::Ordered))));
    assert_sound(&db, "s", 100).await;
    server.kill_9();
    std::fs::remove_dir_all(&server.dir).ok();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_locked_stock_row_rolls_everything_back_and_lands_later() {
    let db = fresh("locked").await;
    sales::create(&db, &sale("s", 1_000, PurchasePolicy::OnePerUser)).await.unwrap();
    let mut client = Command::new("mariadb");
    client.args(["--no-defaults", "-uroot", "-h127.0.0.1", &format!("-P{}", server().port), "t_locked", "-e"]);
    client.arg("BEGIN; UPDATE sales SET title = 'x'; SELECT SLEEP(5); ROLLBACK").stdout(Stdio::null());
    let mut holder = client.spawn().unwrap();
    tokio::time::sleep(Duration::from_millis(500)).await;
    let started = Instant::now();
    let items = crowd("s", 1..=100);
    let got = land(&db, &items, Source::Relay).await;
    assert!(got.iter().all(|v| matches!(v, Err(DbError::Timeout(_)))), "{got:?}");
    assert!(started.elapsed() < Duration::from_secs(4), "one wait, not one a row: {:?}", started.elapsed());
    assert!(outcomes::fate_of(&db, items[0].purchase.request_id).await.unwrap().is_none());
    assert_sound(&db, "s", 0).await;
    assert!(holder.wait().unwrap().success());
    assert_eq!(verdicts(&db, &items).await, vec![Verdict::Ordered; 100]);
    assert_sound(&db, "s", 100).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_register_opens_gives_up_and_closes_without_deciding_twice() {
    let db = fresh("register").await;
    sales::create(&db, &sale("s", 100, PurchasePolicy::OnePerUser)).await.unwrap();
    let items = crowd("s", 1..=4);
    for item in &items {
        let payload = b"\xff raw bytes";
        let failure =
            OpenFailure { accepted: item, reporter: Reporter::RelayDlq, reason: "ATTEMPTS", detail: "x", payload };
        assert!(register::open(&db, &failure).await.unwrap());
        assert!(!register::open(&db, &failure).await.unwrap());
    }
    let given_up = Verdict::Refused(FailReason::GivenUp);
    assert_eq!(register::give_up(&db, &items[0], "customer called", "op").await, Ok(given_up));
    let already = Verdict::Already(Fate::Failed(FailReason::GivenUp));
    assert_eq!(register::give_up(&db, &items[0], "again", "op").await, Ok(already));
    assert_eq!(verdicts(&db, &items[..2]).await, [already, Verdict::Ordered]);
    assert_eq!(register::give_up(&db, &items[1], "late", "op").await, Ok(Verdict::Already(Fate::Ordered)));
    assert!(register::resolve(&db, items[2].purchase.request_id, "op").await.unwrap());
    assert!(!register::resolve(&db, items[2].purchase.request_id, "op").await.unwrap());
    assert_eq!(register::close_settled(&db, "reconcile").await, Ok(1));
    let open = Wanted { status: Some(FailureStatus::Open), limit: 10, ..Wanted::default() };
    let rows = register::list(&db, &open).await.unwrap();
    assert_eq!(rows.iter().map(|r| r.request_id.get()).collect::<Vec<_>>(), [4]);
    assert_eq!(rows[0].payload, b"\xff raw bytes");
    let all = Wanted { sale_id: Some(sale_id("s")), after: RequestId::new(1), limit: 10, ..Wanted::default() };
    let all = register::list(&db, &all).await.unwrap();
    assert_eq!(
        all.iter().map(|r| r.status).collect::<Vec<_>>(),
        [FailureStatus::Resolved, FailureStatus::Resolved, FailureStatus::Open]
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn audits_are_kept_and_one_leads_at_a_time() {
    let db = fresh("audit").await;
    let finding = audit::Finding {
        sale_id: Some(sale_id("s")),
        request_id: RequestId::new(5),
        code: "P5-RC1".into(),
        detail: "d".into(),
    };
    for n in 0..3 {
        let run = audit::Run {
            sale_id: None,
            started_at_ms: NOW_MS + n,
            ended_at_ms: NOW_MS + n + 10,
            consistent: n == 0,
            examined_count: 7,
            sheet: "{}".into(),
            findings: vec![finding.clone(); usize::try_from(n).unwrap()],
        };
        audit::record(&db, &run).await.unwrap();
    }
    let runs = audit::last_runs(&db, 2).await.unwrap();
    assert_eq!(runs.iter().map(|r| (r.started_at_ms - NOW_MS, r.findings.len())).collect::<Vec<_>>(), [(2, 2), (1, 1)]);
    assert_eq!(runs[0].findings[0], finding);
    assert_eq!(audit::prune(&db, 1).await, Ok(2));
    assert_eq!(audit::last_runs(&db, 10).await.unwrap().len(), 1);

    let mut leader = leader::try_lead(&db, "reconcile").await.unwrap().unwrap();
    assert!(leader::try_lead(&db, "reconcile").await.unwrap().is_none());
    assert!(leader::try_lead(&db, "other").await.unwrap().is_some());
    assert!(leader.holds().await.unwrap());
    drop(leader);
    let started = Instant::now();
    while leader::try_lead(&db, "reconcile").await.unwrap().is_none() {
        assert!(started.elapsed() < Duration::from_secs(2));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn landing_speed_is_printed() {
    let db = fresh("speed").await;
    sales::create(&db, &sale("g", 1_000_000, PurchasePolicy::OnePerUser)).await.unwrap();
    sales::create(&db, &sale("o", 1_000_000, PurchasePolicy::OnePerUser)).await.unwrap();
    let groups: Vec<_> = (0..100).map(|n| crowd("g", n * 200 + 1..=n * 200 + 200)).collect();
    let started = Instant::now();
    for group in &groups {
        assert_eq!(land_group(&db, group, Source::Relay).await, Ok(GroupResult::Landed));
    }
    println!("groups of 200: {:.0} orders/s", 20_000.0 / started.elapsed().as_secs_f64());
    let started = Instant::now();
    let tasks: Vec<_> = (0..16u64)
        .map(|task| {
            let db = db.clone();
            tokio::spawn(async move {
                for n in 0..125 {
                    let rid = 1_000_000 + task * 1_000 + n;
                    let one = accepted("o", rid, &format!("u{rid}"), 1);
                    assert_eq!(land_one(&db, &one, Source::Relay).await, Ok(Verdict::Ordered));
                }
            })
        })
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
    println!("land_one, 16 tasks: {:.0} orders/s", 2_000.0 / started.elapsed().as_secs_f64());
    let started = Instant::now();
    let repeats = &groups[..20];
    for group in repeats {
        assert!(verdicts(&db, group).await.iter().all(|v| *v == Verdict::Already(Fate::Ordered)));
    }
    println!("pure redeliveries: {:.0} requests/s", 4_000.0 / started.elapsed().as_secs_f64());
}
