//! A sale that ended and was never closed is reported by the doctor, an hour later, until it is closed.

use crate::support::world::parts::mysql_store::{NOW_MS, fresh, rows, sale, sale_id};
use crate::support::world::{World, run};
use seckill::domain::policy::PurchasePolicy;
use seckill::domain::sale::SaleStatus;
use seckill::p5_reconcile::rows::ended::{EndedOpen, GRACE_MS};
use seckill::runtime::now_ms;

#[test]
fn only_open_sales_are_reported_and_only_after_the_grace() {
    run(async {
        let db = fresh("ended").await;
        for (id, status) in [
            ("draft", SaleStatus::Draft),
            ("warmed", SaleStatus::Warmed),
            ("paused", SaleStatus::Paused),
            ("closed", SaleStatus::Closed),
        ] {
            rows(&db).sales.create(&sale(id, 10, PurchasePolicy::OnePerUser)).await.unwrap();
            rows(&db).sales.set_status(&sale_id(id), status, &SaleStatus::ALL).await.unwrap();
        }
        let end = NOW_MS + 3_600_000;
        let none = EndedOpen { count: 0, named: vec![] };
        assert_eq!(rows(&db).books.ended_open(end + GRACE_MS, 0).await, Ok(none.clone()));
        let two = EndedOpen { count: 2, named: vec![sale_id("paused"), sale_id("warmed")] };
        assert_eq!(rows(&db).books.ended_open(end + GRACE_MS + 1, 0).await, Ok(two.clone()));
        // What closes by itself is reported when that did not happen.
        assert_eq!(rows(&db).books.ended_open(end + GRACE_MS + 60_000, 60).await, Ok(none));
        assert_eq!(rows(&db).books.ended_open(end + GRACE_MS + 60_001, 60).await, Ok(two));
    });
}

#[test]
fn the_doctor_names_a_sale_that_was_not_closed() {
    run(async {
        let world = World::with(&[], &[]).await;
        let over = |ended_ms: i64| (now_ms() - ended_ms - 3_600_000, now_ms() - ended_ms);
        world.sale_with("forgotten", 10, |sale| (sale.starts_at_ms, sale.ends_at_ms) = over(2 * GRACE_MS)).await;
        world.sale_with("just-over", 10, |sale| (sale.starts_at_ms, sale.ends_at_ms) = over(GRACE_MS / 2)).await;
        let check = || {
            let said = world.cli(&["--set", "p5_reconcile.auto_close_after_s=0", "doctor", "--json"]);
            let checks = said.json()["checks"].as_array().unwrap().clone();
            let line = checks.into_iter().find(|line| line["name"] == "sales that ended and were not closed").unwrap();
            (line["value"].as_str().unwrap().to_owned(), line["verdict"].as_str().unwrap().to_owned())
        };
        assert_eq!(check(), ("1: forgotten".to_owned(), "warning".to_owned()));
        world.cli(&["sale", "close", "forgotten"]).exits(0);
        assert_eq!(check(), ("0".to_owned(), "fine".to_owned()));
        world.finish().await;
    });
}
