//! A closed sale is exported, checked and removed in steps that can be repeated; its sums stay, and nothing else is touched
//! (E13).

use crate::support::buyers::orders::LONG;
use crate::support::processes::programs::Folder;
use crate::support::world::{World, eventually, run};
use diesel::QueryableByName;
use diesel::sql_types::Text;
use diesel_async::{AsyncConnection, AsyncMysqlConnection, RunQueryDsl};
use seckill::domain::ids::SaleId;
use seckill::domain::operator::Actor;
use seckill::p5_reconcile::archive::rows::TABLES;
use seckill::p5_reconcile::archive::{Archive, ArchiveError, Removed};
use seckill::p5_reconcile::{Window, audit_sale};
use seckill::roles::Role::{Api, Consumer, Reconcile, Relay};
use serde_json::Value;
use std::path::Path;

pub(super) const AUDITS: &[&str] = &["p5_reconcile.interval_ms=100"];

/// A world with two sales that sold; the one called `old` is closed and gone from Redis.
async fn settled() -> (World, SaleId, SaleId) {
    let world = World::with(&[Api, Relay, Consumer], AUDITS).await;
    let (old, other) = (world.sale("old", 100, Some(3)).await, world.sale("other", 100, Some(1)).await);
    for user in 0..30 {
        world.bought(&old, &format!("u{user}")).await;
        world.bought(&old, &format!("u{user}")).await;
    }
    let cancelled = world.bought(&old, "u0").await;
    for user in 0..5 {
        world.bought(&other, &format!("u{user}")).await;
    }
    world.settled(&old).await;
    world.settled(&other).await;
    world
        .cli(&["order", "cancel", &cancelled.to_string(), "--reason", "the \"buyer\" \\ was\nrefunded, 退款"])
        .exits(0);
    world.cli(&["sale", "close", "old"]).exits(0);
    (world, old, other)
}

/// P5 with a short memory takes the closed sale out of Redis.
pub(super) async fn gone_from_redis(world: &World, sale: &SaleId) {
    let forgets = world.extra_roles(&[Reconcile], |settings| settings.p5_reconcile.ledger_retention_s = 1);
    let meta = world.servers.redis.keys.meta(0, sale);
    eventually("no keys in redis", async || world.redis(&["EXISTS", &meta]).await.as_u64() == Some(0)).await;
    forgets.stop().await;
}

pub(super) fn archive(world: &World, sale: &SaleId, to: &Path) -> Archive {
    Archive::new(world.reconcile_context(), sale.clone(), to, Box::new(|_words: &str| {}))
}

fn rows(folder: &Path, table: &str) -> Vec<Value> {
    let text = std::fs::read_to_string(folder.join(format!("{table}.jsonl"))).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[derive(QueryableByName)]
struct Line {
    #[diesel(sql_type = Text)]
    line: String,
}

/// Money for an order of a sale without a payment step: the rows that say so stay until it went back.
async fn refused_while_money_has_to_go_back(world: &World, call: &[&str]) {
    let order = world.number("SELECT MIN(request_id) AS n FROM orders WHERE sale_id = 'old'").await.to_string();
    let payment = ["--payment-id", "late"];
    let price = ["--amount", "100", "--currency", "CNY"];
    assert!(
        world.cli(&[&["order", "paid", &order], &payment[..], &price].concat()).exits(1).err.contains("REFUND_NEEDED")
    );
    let refused = world.cli(call).exits(1).err;
    assert!(refused.contains("has to go back (1 payments)"), "{refused}");
    world.cli(&[&["order", "refunded", &order], &payment[..]].concat()).exits(0);
}

#[test]
fn an_export_has_every_row_and_column_of_a_closed_sale_and_of_no_other() {
    run(async {
        let (mut world, old, _other) = settled().await;
        let folder = Folder::new("archive-export");
        let to = folder.path().to_str().unwrap();
        let call = ["sale", "archive", "other", "--to", to];
        assert!(world.cli(&call).exits(1).err.contains("run seckill sale close other first"));
        let call = ["sale", "archive", "old", "--to", to];
        assert!(world.cli(&call).exits(1).err.contains("redis still has sale old"));
        gone_from_redis(&world, &old).await;
        world.sql("UPDATE sales SET stock = stock + 1 WHERE sale_id = 'old'").await;
        assert!(world.cli(&call).exits(1).err.contains("does not add up"));
        world.sql("UPDATE sales SET stock = stock - 1 WHERE sale_id = 'old'").await;
        refused_while_money_has_to_go_back(&world, &call).await;
        assert!(!folder.path().join("old").exists(), "nothing was written of a sale that is refused");
        assert!(world.cli(&[&call[..], &["--remove"]].concat()).exits(1).err.contains("without --remove first"));

        let said = world.cli(&call).exits(0).out;
        assert!(said.contains("61 orders of 61 units, 61 requests with an outcome"), "{said}");
        let export = folder.path().join("old");
        let manifest = std::fs::read(export.join("manifest.json")).unwrap();
        let listed: Value = serde_json::from_slice(&manifest).unwrap();
        assert_eq!(
            (&listed["granted"], &listed["stock"], &listed["ordered"]),
            (&100.into(), &40.into(), &61.into()),
            "{listed:#}"
        );
        assert_eq!(listed["series"][0]["outcomes"], 61);
        let mut session = AsyncMysqlConnection::establish(world.settings.mysql.url.expose()).await.unwrap();
        for table in &TABLES {
            let there = world.rows(table.name, "sale_id = 'old'").await;
            assert_eq!(rows(&export, table.name).len(), usize::try_from(there).unwrap(), "{}", table.name);
            let columns = format!(
                "SELECT CAST(column_name AS CHAR) AS line FROM information_schema.columns WHERE table_schema = DATABASE() AND table_name = '{}'",
                table.name
            );
            let columns: Vec<Line> = diesel::sql_query(columns).load(&mut session).await.unwrap();
            let mut wanted: Vec<String> = columns.into_iter().map(|column| column.line).collect();
            let mut exported: Vec<String> = table.columns().map(str::to_owned).collect();
            wanted.sort();
            exported.sort();
            assert_eq!(exported, wanted, "{}: a column is not exported", table.name);
        }
        let orders = rows(&export, "orders");
        let cancelled: Vec<&Value> = orders.iter().filter(|order| !order["cancelled_at"].is_null()).collect();
        assert_eq!(cancelled.len(), 1);
        assert_eq!((&cancelled[0]["user_id"], &cancelled[0]["sale_id"]), (&"u0".into(), &"old".into()));
        assert_eq!(cancelled[0]["cancel_reason"], "the \"buyer\" \\ was\nrefunded, 退款");

        // Again: compared and left. After a crash before the manifest: whole files are kept, the others are written.
        world.cli(&call).exits(0);
        assert_eq!(std::fs::read(export.join("manifest.json")).unwrap(), manifest);
        std::fs::remove_file(export.join("manifest.json")).unwrap();
        let orders = std::fs::read(export.join("orders.jsonl")).unwrap();
        std::fs::rename(export.join("orders.jsonl"), export.join("orders.jsonl.part")).unwrap();
        world.cli(&call).exits(0);
        assert_eq!(std::fs::read(export.join("orders.jsonl")).unwrap(), orders);
        // A file that somebody changed.
        std::fs::write(export.join("orders.jsonl"), &orders[orders.len() / 2..]).unwrap();
        assert!(world.cli(&call).exits(1).err.contains("is not what its manifest says"));
        world.stop_roles().await;
        world.finish().await;
    });
}

/// What is kept of a sale that was removed.
async fn kept_and_never_given_again(world: &World, to: &str, (orders_count, hash): (u64, &str)) {
    let kept = world.cli(&["sale", "show", "old", "--json"]).exits(0).json();
    let sums = &kept["archived"];
    assert_eq!((&sums["granted"], &sums["stock"], &sums["ordered"]), (&100.into(), &41.into(), &61.into()), "{kept}");
    assert_eq!((sums["orders_count"].as_u64(), sums["manifest"].as_str()), (Some(orders_count), Some(hash)));
    assert_eq!((&sums["archived_by"], &kept["being_removed"]), (&"ann".into(), &false.into()));
    assert!(world.cli(&["sale", "list"]).exits(0).out.contains("archived sale"));
    assert!(world.rows("operator_acts", "action = 'sale.archive' AND sale_id = 'old'").await > 0);
    let again = world.cli(&["sale", "archive", "old", "--to", to, "--remove"]).exits(1).err;
    assert!(again.contains("was archived before") && again.contains(hash), "{again}");
    let taken = world.cli(&[
        "sale",
        "create",
        "--id",
        "old",
        "--product",
        "p",
        "--title",
        "t",
        "--stock",
        "5",
        "--starts-at",
        "2026-01-01T10:00:00Z",
        "--ends-at",
        "2026-01-01T12:00:00Z",
    ]);
    assert!(taken.exits(1).err.contains("its id is not given again"));
    assert_eq!(world.rows("sales", "sale_id = 'old'").await, 0);
}

#[test]
fn a_removal_goes_on_where_it_was_killed_keeps_the_sums_and_touches_no_other_sale() {
    run(async {
        let (mut world, old, other) = settled().await;
        gone_from_redis(&world, &old).await;
        let folder = Folder::new("archive-remove");
        let (to, actor) = (folder.path().to_str().unwrap(), Actor::at_the_terminal("ann"));
        archive(&world, &old, folder.path()).export().await.unwrap();

        // What happened since the export is not lost.
        let order = rows(&folder.path().join("old"), "orders")[7]["request_id"].as_str().unwrap().to_owned();
        world.cli(&["order", "cancel", &order, "--reason", "late"]).exits(0);
        let refused = archive(&world, &old, folder.path()).remove(&actor, 1).await;
        assert!(matches!(refused, Err(ArchiveError::Differs { .. })), "{refused:?}");
        assert_eq!(world.rows("archived_sales", "TRUE").await, 0);
        std::fs::remove_dir_all(folder.path().join("old")).unwrap();
        let (manifest, hash) = archive(&world, &old, folder.path()).export().await.unwrap();

        // Killed after one page, after two, …: a repeat goes on, and meanwhile nothing takes the rest for a sale.
        let as_read_before = world.servers.rows.sales.get(&old).await.unwrap().unwrap();
        let mut pages = 1;
        while archive(&world, &old, folder.path()).remove(&actor, pages).await.unwrap() == Removed::Stopped {
            assert_eq!(world.rows("sales", "sale_id = 'old'").await, 1, "the sale's own row goes last");
            let released = world.servers.rows.sales.released().await.unwrap();
            assert_eq!(released.iter().map(|sale| &sale.sale_id).collect::<Vec<_>>(), [&other]);
            // An audit that read the sale before the removal began.
            let audit = audit_sale(&world.reconcile_context(), &as_read_before, Window::Now).await.unwrap();
            assert!(audit.consistent(), "after {pages} pages: {audit:?}");
            if pages == 1 {
                assert!(world.cli(&["sale", "list"]).exits(0).out.contains("archived, being removed"));
                world.cli(&["audit", "--now"]).exits(0);
                assert!(world.cli(&["audit", "--sale", "old"]).exits(1).err.contains("is being removed"));
                let err = world.cli(&["sale", "archive", "old", "--to", to]).exits(1).err;
                assert!(err.contains("go on with --remove") && err.contains(&hash), "{err}");
            }
            pages += 1;
        }
        assert!(pages > 3, "killed more than once: {pages}");
        for table in &TABLES {
            assert_eq!(world.rows(table.name, "sale_id = 'old'").await, 0, "{}", table.name);
        }
        assert_eq!((world.orders(&other).await, world.rows("request_outcome", "TRUE").await), (5, 5));

        kept_and_never_given_again(&world, to, (manifest.sums.orders_count, &hash)).await;
        world.stop_roles().await;
        world.finish().await;
    });
}

#[test]
fn a_sale_with_orders_that_wait_for_their_payment_is_not_archived() {
    run(async {
        let world = World::with(&[Api, Relay, Consumer], AUDITS).await;
        let (folder, actor) = (Folder::new("archive-unpaid"), Actor::at_the_terminal("ann"));
        let sale = world.paying_sale("unpaid", 5, Some(1), LONG).await;
        let alice = world.ordered(&sale, "alice").await;
        world.settled(&sale).await;
        world.cli(&["sale", "close", "unpaid"]).exits(0);
        gone_from_redis(&world, &sale).await;
        let call = ["sale", "archive", "unpaid", "--to", folder.path().to_str().unwrap()];
        let refused = world.cli(&call).exits(1).err;
        assert!(refused.contains("orders of 1 units of sale unpaid wait for their payment"), "{refused}");
        assert!(refused.contains("or cancel them"), "{refused}");
        assert!(!folder.path().join("unpaid").exists(), "nothing was written of a sale that is refused");
        let refused = archive(&world, &sale, folder.path()).remove(&actor, usize::MAX).await;
        assert!(matches!(refused, Err(ArchiveError::Unpaid(_, 1))), "{refused:?}");
        assert_eq!((world.rows("archived_sales", "TRUE").await, world.orders(&sale).await), (0, 1));
        assert!(world.order_in("UNPAID", alice).await);
        world.cli(&["order", "cancel", &alice.to_string(), "--reason", "never paid"]).exits(0);
        world.cli(&call).exits(0);
        world.finish().await;
    });
}

/// Reported while the sale is being removed, money meets an order that is still there and cannot take it.
#[test]
fn payments_stay_when_their_sale_is_removed_also_those_that_are_reported_meanwhile() {
    run(async {
        let world = World::with(&[Api, Relay, Consumer], AUDITS).await;
        let (admin, folder) = (world.admin_port(), Folder::new("archive-payments"));
        let actor = Actor::at_the_terminal("ann");
        let sale = world.paying_sale("paid", 5, Some(1), LONG).await;
        let alice = world.ordered(&sale, "alice").await;
        assert_eq!(admin.pay(alice, "pi_1").await.code(), "P6-F1");
        world.settled(&sale).await;
        world.cli(&["sale", "close", "paid"]).exits(0);
        gone_from_redis(&world, &sale).await;
        archive(&world, &sale, folder.path()).export().await.unwrap();
        assert_eq!(rows(&folder.path().join("paid"), "payments").len(), 1, "exported");

        let begun = archive(&world, &sale, folder.path()).remove(&actor, 0).await.unwrap();
        assert_eq!((begun, world.rows("archived_sales", "sale_id = 'paid'").await), (Removed::Stopped, 1));
        let second = admin.pay(alice, "pi_2").await;
        assert_eq!((second.code(), second.text("reason")), ("P6-F4".to_owned(), "ALREADY_PAID".to_owned()));
        let removed = archive(&world, &sale, folder.path()).remove(&actor, usize::MAX).await.unwrap();
        assert_eq!(removed, Removed::All);
        for table in TABLES.iter().filter(|table| !table.stays) {
            assert_eq!(world.rows(table.name, "sale_id = 'paid'").await, 0, "{}", table.name);
        }

        assert_eq!(world.rows("payments", "sale_id = 'paid'").await, 2, "never removed");
        let refunds = world.cli(&["order", "refunds", "--sale", "paid"]).exits(0).out;
        assert!(refunds.contains("pi_2") && !refunds.contains("pi_1"), "{refunds}");
        assert_eq!(admin.pay(alice, "pi_1").await.code(), "P6-F1", "reported again, it is what it was");
        world.cli(&["order", "refunded", &alice.to_string(), "--payment-id", "pi_2"]).exits(0);
        assert_eq!(world.rows("payments", "state = 'REFUNDED' AND payment_id = 'pi_2'").await, 1);
        world.cli(&["audit", "--now"]).exits(0);
        world.finish().await;
    });
}
