//! The journal is summed from where it was summed before, in two parts: rows that are old, and rows that are still young. Every row is in
//! one of them, at every moment, in whatever order rows were written.

use crate::support::world::{World, run};
use seckill::domain::ids::SaleId;
use seckill::p5_reconcile::Window;
use seckill::p5_reconcile::rows::books::{Books, BooksQuery, GrantsSum, JournalSum, OrdersTurn};
use seckill::roles::Role::{Api, Consumer, Relay};
use std::fmt::Write;

/// Rows of the journal that become old one after the other, a millisecond apart.
const ROWS: u32 = 4_000;
/// How old the first of them is when they are written, milliseconds; rows are old after a minute.
const FIRST_MS: u32 = 58_000;

/// Rows that add up to nothing, and to something wherever some of them are left out.
async fn write_rows(world: &World, sale: &SaleId) {
    let mut text = String::from("INSERT INTO stock_flow (sale_id, delta, kind, ref, created_at) VALUES ");
    for row in 0..ROWS {
        let delta = if row < ROWS / 2 { 1 } else { -1 };
        let comma = if row == 0 { "" } else { "," };
        let age_us = i64::from(FIRST_MS) * 1_000 - i64::from(row) * 1_000;
        write!(text, "{comma}('{sale}', {delta}, 'expire', 'row-{row}', NOW(3) - INTERVAL {age_us} MICROSECOND)")
            .unwrap();
    }
    world.sql(&text).await;
}

/// A sale that sells for longer than a minute has such rows at every moment.
#[test]
fn no_row_of_the_journal_is_left_out_at_the_moment_it_becomes_old() {
    run(async {
        let world = World::with(&[Api, Relay, Consumer], &[]).await;
        let sale = world.sale("minute", 100, Some(1)).await;
        for user in ["alice", "bob"] {
            world.bought(&sale, user).await;
        }
        assert!(world.settled(&sale).await.consistent());
        write_rows(&world, &sale).await;
        let old =
            "SELECT COUNT(*) AS n FROM stock_flow WHERE ref LIKE 'row-%' AND created_at < NOW(3) - INTERVAL 60 SECOND";
        let (mut audits, mut beside) = (0, 0);
        loop {
            let before = world.number(old).await;
            let audit = world.audit(&sale, Window::Now).await;
            let after = world.number(old).await;
            assert!(audit.consistent(), "audit {audits}, {before} to {after} of {ROWS} rows were old: {audit:#?}");
            (audits, beside) = (audits + 1, beside + u32::from(before < after));
            if before == i64::from(ROWS) {
                break;
            }
        }
        assert!(beside > 0, "no audit saw rows become old; {audits} audits");
        world.finish().await;
    });
}

async fn read(world: &World, sale: &SaleId, flow_before: JournalSum) -> Books {
    let (grants_before, orders) = (GrantsSum::default(), OrdersTurn::All { by_outcome: 0 });
    let query = BooksQuery { asked: &[], flow_before, grants_before, orders };
    world.servers.rows.books.read(sale, query).await.unwrap().expect("the sale")
}

/// Ids are given when a row is written and times when its statement began: two writers have them in different orders.
#[test]
fn a_young_row_below_an_old_one_is_read_again() {
    run(async {
        let world = World::with(&[Api, Relay, Consumer], &[]).await;
        let sale = world.sale("order", 100, Some(1)).await;
        let row = |name: &str, age_s: u32| {
            format!(
                "INSERT INTO stock_flow (sale_id, delta, kind, ref, created_at) VALUES ('order', 7, 'correction', '{name}', NOW(3) - INTERVAL {age_s} SECOND); "
            )
        };
        world.sql("UPDATE stock_flow SET created_at = created_at - INTERVAL 1 HOUR").await;
        world.sql(&(row("a", 300) + &row("b", 0) + &row("c", 300) + &row("d", 0))).await;
        let first = read(&world, &sale, JournalSum::default()).await;
        assert_eq!(first.flow.sum, 128);
        assert!(first.flow_settled.to > 0, "something is old");
        let second = read(&world, &sale, first.flow_settled).await;
        assert_eq!(second.flow.sum, 128, "{first:#?}\n{second:#?}");
        world.sql("DELETE FROM stock_flow WHERE kind = 'correction'").await;
        world.finish().await;
    });
}
