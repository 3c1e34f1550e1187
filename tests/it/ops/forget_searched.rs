//! Forgetting a buyer searches every text of the database: a new column has to be thought of.

use crate::support::world::{World, run};
use seckill::buyers::rows::searched::SEARCHED;
use std::collections::BTreeSet;

#[test]
fn every_text_of_every_table_is_searched_or_known_to_name_no_buyer() {
    run(async {
        let world = World::with(&[], &[]).await;
        let mut known = BTreeSet::new();
        for table in &SEARCHED {
            for column in table.naming.iter().map(|column| column.name).chain(table.others.iter().copied()) {
                assert!(known.insert((table.name.to_owned(), column.to_owned())), "{} {column} twice", table.name);
            }
        }
        let there = world.text_columns().await.into_iter().filter(|(table, _)| !table.starts_with("__diesel"));
        let there: BTreeSet<_> = there.collect();
        let missing: Vec<_> = there.difference(&known).collect();
        let gone: Vec<_> = known.difference(&there).collect();
        assert!(missing.is_empty() && gone.is_empty(), "not in SEARCHED: {missing:?}, not in the database: {gone:?}");
        world.finish().await;
    });
}
