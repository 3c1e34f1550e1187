//! A database that went back in time may have lost a sale whole, or be back before it was warmed up: nothing that an audit of the known
//! sales reads shows it. Redis does (seen with a torn log of InnoDB, which MariaDB replays up to the damage and starts).

use crate::support::world::{World, eventually, run};
use seckill::domain::ids::SaleId;
use seckill::p5_reconcile::{FindingKind, unknown_sales};
use seckill::roles::Role::{self, Api, Consumer, Relay};

const TABLES: [&str; 5] = ["orders", "request_outcome", "stock_flow", "stock_grants", "sales"];

/// The database as it was before the sale was created.
async fn forget(world: &World, sale: &SaleId) {
    for table in TABLES {
        world.sql(&format!("DELETE FROM {table} WHERE sale_id = '{sale}'")).await;
    }
}

#[test]
fn a_sale_that_the_database_has_lost_whole_is_named() {
    run(async {
        let world = World::with(&[Api, Relay, Consumer], &[]).await;
        let (kept, lost) = (world.sale("kept", 10, None).await, world.sale("lost", 10, None).await);
        for sale in [&kept, &lost] {
            world.bought(sale, "alice").await;
            world.settled(sale).await;
        }
        world.cli(&["audit", "--now"]).exits(0);

        forget(&world, &lost).await;
        let said = world.cli(&["audit", "--now", "--json"]).exits(2).json();
        assert_eq!(said["consistent"], false, "{said}");
        let of =
            |sale: &SaleId| said["sales"].as_array().unwrap().iter().find(|of| of["sale_id"] == sale.as_str()).cloned();
        assert_eq!(of(&kept).unwrap()["consistent"], true);
        let finding = &of(&lost).unwrap()["findings"][0];
        assert_eq!(finding["kind"], "UNKNOWN_SALE", "{said}");
        let detail = finding["detail"].as_str().unwrap();
        assert!(
            detail.starts_with("redis has accepted 1 requests of it in epoch 1, and the database has no row"),
            "{detail}"
        );
        world.redis(&["UNLINK", &world.servers.redis.keys.meta(0, &lost)]).await;
        world.finish().await;
    });
}

#[test]
fn a_sale_that_the_database_has_as_a_draft_again_is_named() {
    run(async {
        let world = World::with(&[Api, Relay, Consumer], &[]).await;
        let sale = world.sale("young", 10, None).await;
        world.bought(&sale, "alice").await;
        world.settled(&sale).await;
        for table in ["orders", "request_outcome"] {
            world.sql(&format!("DELETE FROM {table} WHERE sale_id = '{sale}'")).await;
        }
        world.sql(&format!("DELETE FROM stock_flow WHERE sale_id = '{sale}' AND kind = 'order'")).await;
        world.sql(&format!("UPDATE sales SET status = 'draft', stock = 10 WHERE sale_id = '{sale}'")).await;
        let named = unknown_sales(&world.reconcile_context()).await.unwrap();
        assert!(named.len() == 1 && named[0].findings[0].kind == FindingKind::UnknownSale, "{named:?}");
        assert!(named[0].findings[0].detail.contains("the database has it as a draft"), "{named:?}");
        world.sql(&format!("UPDATE sales SET status = 'warmed' WHERE sale_id = '{sale}'")).await;
        assert!(unknown_sales(&world.reconcile_context()).await.unwrap().is_empty(), "its own audit has the findings");
        forget(&world, &sale).await;
        world.redis(&["UNLINK", &world.servers.redis.keys.meta(0, &sale)]).await;
        world.finish().await;
    });
}

/// Keys that nothing was accepted by, and those of a sale that is being removed.
#[test]
fn what_was_not_sold_and_what_was_archived_is_not_named() {
    run(async {
        let world = World::with(&[Api, Relay, Consumer], &[]).await;
        let (unsold, archived) = (world.sale("unsold", 10, None).await, world.sale("archived", 10, None).await);
        world.bought(&archived, "alice").await;
        world.settled(&archived).await;
        world.sql(&format!("UPDATE sales SET status = 'draft' WHERE sale_id = '{unsold}'")).await;
        forget(&world, &archived).await;
        assert_eq!(unknown_sales(&world.reconcile_context()).await.unwrap().len(), 1);
        world
            .sql(&format!(
                "INSERT INTO archived_sales (sale_id, title, granted, stock, ordered, orders_count, outcomes_count, manifest, \
                 archived_by) VALUES ('{archived}', 'T', 10, 9, 1, 1, 1, REPEAT('a', 64), 'ann')"
            ))
            .await;
        assert_eq!(unknown_sales(&world.reconcile_context()).await.unwrap().len(), 0);
        world.sql(&format!("UPDATE sales SET status = 'warmed' WHERE sale_id = '{unsold}'")).await;
        world.redis(&["UNLINK", &world.servers.redis.keys.meta(0, &archived)]).await;
        world.finish().await;
    });
}

#[test]
fn the_reconciler_reports_it_until_the_row_is_back() {
    run(async {
        let world = World::with(&Role::ALL, &["p5_reconcile.interval_ms=50"]).await;
        let sale = world.sale("away", 10, None).await;
        world.bought(&sale, "alice").await;
        world.settled(&sale).await;
        forget(&world, &sale).await;
        eventually("the finding", async || world.rows("audit_findings", "code = 'UNKNOWN_SALE'").await > 0).await;
        world.redis(&["UNLINK", &world.servers.redis.keys.meta(0, &sale)]).await;
        world.finish().await;
    });
}
