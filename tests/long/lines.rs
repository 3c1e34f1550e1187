//! A line of a million entries for 500 units: sealed, drawn, shown, verified by another program, and offered, and what each takes. Nothing is
//! asserted on speed.

use crate::support::processes::programs::scratch;
use crate::support::world::{World, eventually, run};
use seckill::domain::ids::RequestId;
use seckill::domain::line::LineKind;
use seckill::roles::Role::{Api, Consumer, Reconcile, Relay};
use std::time::Instant;

/// Entries.
const ENTRIES: u64 = 1_000_000;
/// Units.
const UNITS: i64 = 500;

/// Another program in another language comes to the same.
fn verified_in_python(draw: &str, list: &str) {
    let (folder, script) = (scratch("million-entries"), concat!(env!("CARGO_MANIFEST_DIR"), "/docs/verify-draw.py"));
    let (entries, document) = (folder.join("entries.txt"), folder.join("draw.json"));
    std::fs::write(&entries, list).unwrap();
    std::fs::write(&document, draw).unwrap();
    let began = Instant::now();
    let verified = std::process::Command::new("python3").arg(script).args([&entries, &document]).output().unwrap();
    eprintln!("verified in Python: {:?}", began.elapsed());
    assert!(verified.status.success(), "{verified:?}");
}

#[test]
fn a_million_entries_are_sealed_and_drawn() {
    run(async {
        let mut world = World::with(&[Api], &[]).await;
        let sale = world.line_sale("million", UNITS, LineKind::Raffle, |_| ()).await;
        world.entered(&sale, "ann").await;
        // Ids of a generator are far apart and rising; a step that is no power of two scatters their digits.
        for from in (1..ENTRIES).step_by(50_000) {
            let values: Vec<String> = (from..(from + 50_000).min(ENTRIES))
                .map(|no| format!("('million',{},'u{no}','u{no}',1,'WAITING',1,NOW(3),NOW(3))", 1_000_000_007 * no))
                .collect();
            for some in values.chunks(10_000) {
                let columns = "sale_id, entry_id, user_id, limit_key, quantity, state, listed, entered_at, state_at";
                world.sql(&format!("INSERT INTO line_entries ({columns}) VALUES {}", some.join(","))).await;
            }
        }
        world.line_is_over(&sale).await;
        let began = Instant::now();
        world.keep_lines().await;
        eprintln!("closed, sealed and drawn: {:?}", began.elapsed());
        let draw = world.draw_once(&sale, "DRAWN").await;
        assert_eq!(draw.json["entries"], ENTRIES);
        for what in ["first", "second"] {
            let began = Instant::now();
            let mine = world.entry_of(&sale, "ann").await;
            eprintln!("the {what} rank that an api process shows: {:?}", began.elapsed());
            assert!(mine.json["rank"].as_u64().is_some_and(|rank| (1..=ENTRIES).contains(&rank)), "{mine:?}");
        }
        let began = Instant::now();
        let list = world.list_of(&sale).await;
        eprintln!("the list, {} bytes: {:?}", list.body.len(), began.elapsed());
        assert_eq!(list.body.lines().count() as u64, ENTRIES);

        verified_in_python(&draw.body, &list.body);

        world.stop_roles().await;
        let began = Instant::now();
        world.start_roles(&[Api, Relay, Consumer, Reconcile]).await;
        let offered = "sale_id = 'million' AND state = 'OFFERED'";
        eventually("all units are offered", async || world.rows("line_entries", offered).await == UNITS).await;
        eprintln!("{UNITS} units offered, by a leader that has just begun: {:?}", began.elapsed());
        eventually("their orders", async || world.orders(&sale).await == UNITS).await;
        eprintln!("and their orders written: {:?}", began.elapsed());
        let ranks = format!("{offered} AND entry_rank BETWEEN 1 AND {UNITS}");
        assert_eq!(world.rows("line_entries", &ranks).await, UNITS, "the first ranks");
        for turn in 0..20 {
            let next = format!("sale_id = 'million' AND state = 'OFFERED' AND entry_rank = {}", UNITS + turn + 1);
            let overdue = format!(
                "SELECT CAST(request_id AS SIGNED) AS n FROM line_entries WHERE {offered} AND entry_rank = {}",
                turn + 1
            );
            let began = Instant::now();
            let order = RequestId::new(world.number(&overdue).await.unsigned_abs()).unwrap();
            world.overdue(order).await;
            eventually("the next one", async || world.rows("line_entries", &next).await == 1).await;
            eprintln!("expired, and offered to the next: {:?}", began.elapsed());
        }
        world.finish().await;
    });
}
