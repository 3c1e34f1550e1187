//! No change of a sale without its act, and no act without its change: whichever operator goes, and whatever dies (F10).

use crate::support::world::admin_port::{AdminPort, TOKEN};
use crate::support::world::{World, eventually, run};
use seckill::roles::Role::Api;
use serde_json::json;
use std::time::Duration;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

/// Calls of each kind that are cut off, each a little later than the one before; all have a place at once.
const CUT: usize = 24;

/// Sends a write and resets the connection after this number of turns of the runtime.
async fn reset(admin: &AdminPort, path: &str, body: &str, turns: usize) {
    let mut stream = TcpStream::connect(admin.url.strip_prefix("http://").unwrap()).await.unwrap();
    let head = format!("POST /admin/v1{path} HTTP/1.1\r\nHost: seckill\r\nAuthorization: Bearer {TOKEN}\r\n");
    let body = format!("Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}", body.len());
    stream.write_all(format!("{head}{body}").as_bytes()).await.unwrap();
    for _ in 0..turns {
        tokio::task::yield_now().await;
    }
    socket2::SockRef::from(&stream).set_linger(Some(Duration::ZERO)).unwrap();
}

#[test]
fn a_caller_that_resets_its_connection_leaves_no_change_without_its_act() {
    run(async {
        let world = World::with(&[Api], &[]).await;
        let sale = world.sale("cut", 10, None).await;
        let admin = world.admin_port();
        for turn in 0..CUT {
            let (verb, body) = (["pause", "resume"][turn % 2], format!(r#"{{"units":1,"grant":"g{turn}"}}"#));
            reset(&admin, &format!("/sales/cut/{verb}"), "{}", turn * 100).await;
            reset(&admin, "/sales/cut/top-up", &body, turn * 100).await;
        }
        // An answered call is behind them: what they began is being done or done.
        assert_eq!(admin.post("/sales/cut/top-up", json!({ "units": 1, "grant": "last" })).await.status, 200);
        let acts =
            async |what: &str| world.rows("operator_acts", &format!("action = '{what}' AND outcome = 'ok'")).await;
        let granted = "sale_id = 'cut' AND (grant_id LIKE 'g%' OR grant_id = 'last')";
        eventually("each grant has its act, and redis its units", async || {
            let grants = world.rows("stock_grants", granted).await;
            let units = world.servers.redis.stock.units(&sale, 0).await.unwrap();
            grants > 1 && grants == acts("sale.top_up").await && units == Some(10 + grants)
        })
        .await;
        let last = "SELECT COUNT(*) AS n FROM sales WHERE status = IF((SELECT action FROM operator_acts \
                    WHERE action IN ('sale.pause', 'sale.resume') AND outcome = 'ok' ORDER BY act_id DESC LIMIT 1) \
                    = 'sale.pause', 'paused', 'warmed')";
        assert_eq!(world.number(last).await, 1, "the last of them that is on record is the one that holds");
        world.finish().await;
    });
}

#[test]
fn a_command_that_dies_behind_its_commit_is_on_record() {
    run(async {
        let world = World::with(&[], &[]).await;
        world.sale("dies", 10, Some(1)).await;
        for (args, act) in [
            (vec!["sale", "pause", "dies"], "sale.pause"),
            (vec!["sale", "resume", "dies"], "sale.resume"),
            (vec!["sale", "edit", "dies", "--title", "another"], "sale.edit"),
            (vec!["sale", "close", "dies"], "sale.close"),
        ] {
            let before = world.number("SELECT CAST(MAX(version) AS SIGNED) AS n FROM sales").await;
            let died = world.cli_with_faults("F43=return", &args);
            let changed = world.number("SELECT CAST(MAX(version) AS SIGNED) AS n FROM sales").await != before;
            let of = format!("action = '{act}' AND outcome = 'ok' AND after_json LIKE '%\"status\"%'");
            // An edit of a sale that has begun is refused, and neither is there.
            let there = if act == "sale.edit" { i64::from(changed) } else { 1 };
            assert_eq!((died.code.is_none(), world.rows("operator_acts", &of).await), (there == 1, there), "{died:?}");
        }
        let closed = "action = 'sale.close' AND before_json LIKE '%\"warmed\"%' AND after_json LIKE '%\"closed\"%'";
        assert_eq!(world.rows("operator_acts", closed).await, 1, "with what was before and after");
        world.cli(&["sale", "close", "dies"]).exits(0);
        world.finish().await;
    });
}

#[test]
fn the_name_of_a_grant_has_as_many_bytes_as_its_column() {
    run(async {
        let world = World::with(&[Api], &[]).await;
        let sale = world.sale("named", 10, None).await;
        let admin = world.admin_port();
        let top_up = async |grant: &str| admin.post("/sales/named/top-up", json!({ "units": 1, "grant": grant })).await;
        let refused = top_up(&"批".repeat(22)).await;
        assert_eq!((refused.status, refused.code().as_str()), (422, "UNPROCESSABLE"), "{refused:?}");
        assert!(refused.text("detail").contains("66 bytes, expected 1 to 64"), "{refused:?}");
        assert_eq!(top_up(&"批".repeat(21)).await.status, 200);
        assert_eq!(top_up(&"b".repeat(64)).await.status, 200);
        let refused = world.cli(&["sale", "top-up", "named", "1", "--grant", &"批".repeat(64)]).exits(64);
        assert!(refused.err.contains("192 bytes"), "{refused:?}");
        world.cli(&["sale", "top-up", "named", "1", "--grant", &"货".repeat(21)]).exits(0);
        assert_eq!(world.servers.redis.stock.units(&sale, 0).await.unwrap(), Some(13));
        world.finish().await;
    });
}
