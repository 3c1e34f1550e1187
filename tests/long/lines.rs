//! A line of a million entries: sealed, drawn and shown, and what each takes. Nothing is asserted on speed.

use crate::support::world::{World, run};
use seckill::roles::Role::Api;
use std::time::Instant;

/// Entries.
const ENTRIES: u64 = 1_000_000;

#[test]
fn a_million_entries_are_sealed_and_drawn() {
    run(async {
        let world = World::with(&[Api], &[]).await;
        let sale = world.raffle("million", |_, _| ()).await;
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
        world.finish().await;
    });
}
