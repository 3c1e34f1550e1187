//! Orders of a time: those that were accepted in it, however old their purchase tokens are, and however many were read to find them.

use crate::support::world::admin_port::AdminPort;
use crate::support::world::{World, eventually, run};
use seckill::roles::Role;
use seckill_bench::baseline::mysql_bulk::{self as bulk, Bulk};
use serde_json::Value;

fn ids(orders: &Value) -> Vec<String> {
    let orders = orders["orders"].as_array().unwrap().iter();
    orders.map(|order| order["request_id"].as_str().unwrap().to_owned()).collect()
}

/// Every page to the last one; returns the ids, and how many pages there were.
async fn all_pages(admin: &AdminPort, query: &str) -> (Vec<String>, usize) {
    let (mut found, mut pages, mut cursor) = (Vec::new(), 0, String::new());
    loop {
        let page = admin.get(&format!("/orders?{query}{cursor}")).await;
        assert_eq!(page.status, 200, "{page:?}");
        found.extend(ids(&page.json));
        pages += 1;
        let Some(next) = page.json["next"].as_str() else { return (found, pages) };
        cursor = format!("&cursor={next}");
    }
}

#[test]
fn an_order_is_found_at_the_time_of_its_acceptance_and_not_at_that_of_its_token() {
    run(async {
        let world = World::with(&Role::ALL, &[]).await;
        let admin = world.admin_port();
        let sale = world.sale_with("late", 5, |sale| sale.token_required = true).await;
        let (token, _) = world.token(&sale, "alice").await;
        let issued_at = world.number("SELECT CAST(UNIX_TIMESTAMP(NOW(3)) * 1000 AS SIGNED) AS n").await;
        // A buyer thinks for a moment: the token is used at another time than it was issued.
        eventually("two seconds later", async || {
            world.number("SELECT CAST(UNIX_TIMESTAMP(NOW(3)) * 1000 AS SIGNED) AS n").await > issued_at + 2_000
        })
        .await;
        let bought = world.buy(&sale, "alice", 1, Some(&token)).await;
        assert_eq!(bought.status, 202, "{bought:?}");
        let id = bought.text("request_id");
        eventually("an order", async || world.rows("orders", "TRUE").await == 1).await;
        let time = |ms: i64| chrono::DateTime::from_timestamp_millis(ms).unwrap().format("%FT%T%.3fZ").to_string();
        let middle = time(issued_at + 1_000);
        let (from, to) = (format!("from={middle}"), format!("to={middle}"));
        for filter in ["sale=late&", "buyer=alice&", ""] {
            let found = async |range: &str| ids(&admin.get(&format!("/orders?{filter}{range}")).await.json);
            assert_eq!(found(&from).await, [id.as_str()], "{filter}");
            assert!(found(&to).await.is_empty(), "{filter}");
            let exported = admin.get(&format!("/orders/export?{filter}{from}")).await;
            assert!(exported.body.contains(&id), "{exported:?}");
            assert!(admin.get(&format!("/orders/export?{filter}{to}")).await.body.is_empty(), "{filter}");
        }
        assert!(world.cli(&["order", "export", "--from", &middle]).exits(0).out.contains(&id));
        assert!(world.cli(&["order", "list", "--from", &middle]).exits(0).out.contains(&id));
        assert!(world.cli(&["order", "export", "--to", &middle]).exits(0).out.is_empty());
        let bare = world.cli(&["order", "list", "--from", "2026-11-27T20:00:00"]).exits(64);
        assert!(bare.err.contains("RFC 3339 with an offset"), "{bare:?}");
        let bare = admin.get("/orders?from=2026-11-27T20:00:00").await;
        assert!(bare.status == 400 && bare.text("detail").contains("RFC 3339 with an offset"), "{bare:?}");
        world.finish().await;
    });
}

#[test]
fn a_page_of_a_time_reads_a_bounded_number_of_orders_and_the_pages_have_each_of_them_once() {
    run(async {
        let mut world = World::with(&[], &[]).await;
        let admin = world.admin_port();
        let sale = world.sale("many", 100_000, Some(1)).await;
        bulk::prepare(&world.servers.db, &sale).await.unwrap();
        let first = id_of("2025-01-01T00:01:00Z");
        for (number, count) in [(0, 50_000), (50_000, 5_000)] {
            let orders = Bulk { sale: &sale, shard: 0, number: number + 1, request_id: first + number, count };
            bulk::write(&world.servers.db, orders).await.unwrap();
        }
        // All ids are of one moment; three orders were accepted minutes later than the others.
        world.sql("UPDATE orders SET accepted_at = '2025-01-01 00:01:00'").await;
        let late = [54_999, 20_000, 3].map(|at: u64| (first + at).to_string());
        let change =
            format!("UPDATE orders SET accepted_at = '2025-01-01 00:05:00' WHERE request_id IN ({})", late.join(","));
        world.sql(&change).await;
        let query = "sale=many&from=2025-01-01T00:03:00Z&limit=500";
        let (found, pages) = all_pages(&admin, query).await;
        assert_eq!(found, late);
        assert!(pages > 1, "a page does not read fifty-five thousand orders");
        let exported = admin.get("/orders/export?sale=many&from=2025-01-01T00:03:00Z").await;
        assert_eq!(exported.body.lines().count(), 3);
        assert_eq!(all_pages(&admin, "sale=many&to=2025-01-01T00:03:00Z&limit=500").await.0.len(), 54_997);
        let by_command = world.cli(&["order", "export", "--sale", "many", "--from", "2025-01-01T00:03:00Z"]);
        assert_eq!(by_command.exits(0).out, exported.body);
        world.stop_roles().await;
    });
}

/// The lowest id of that time.
fn id_of(time: &str) -> u64 {
    let ms = chrono::DateTime::parse_from_rfc3339(time).unwrap().timestamp_millis();
    u64::try_from(ms - EPOCH_MS).unwrap() << 22
}

/// When ids begin, Unix milliseconds (`domain::snowflake`).
const EPOCH_MS: i64 = 1_735_689_600_000;
