//! A top-up that failed after its commit is repeated under the name it printed, and adds its units once (E8).

use crate::support::processes::command_line::CommandOutput;
use crate::support::world::{World, run};
use seckill::domain::ids::SaleId;

/// The name behind `--grant` in what the command said.
fn grant_of(said: &CommandOutput) -> String {
    let name = said.err.split("--grant ").nth(1).and_then(|rest| rest.split_whitespace().next());
    name.unwrap_or_else(|| panic!("no name to repeat with: {said:?}")).to_owned()
}

/// Units granted by the database, and unsold in Redis.
async fn units(world: &World, sale: &SaleId) -> (i64, Option<i64>) {
    let granted = world.number(&format!("SELECT granted AS n FROM sales WHERE sale_id = '{sale}'")).await;
    (granted, world.servers.redis.stock.units(sale, 0).await.unwrap())
}

#[test]
fn a_top_up_that_failed_after_its_commit_is_repeated_by_the_name_it_printed() {
    run(async {
        let world = World::with(&[], &[]).await;
        let sale = world.sale("unnamed", 10, None).await;
        let keys = &world.servers.redis.keys;
        let (meta, away) = (keys.meta(0, &sale), format!("{}-away", keys.meta(0, &sale)));
        world.redis(&["RENAME", &meta, &away]).await;
        let said = world.cli(&["sale", "top-up", "unnamed", "7"]).exits(1);
        let error = said.err.lines().find(|line| line.starts_with("error: ")).expect("an error");
        assert!(error.contains("lost keys") && error.contains(&grant_of(&said)), "{said:?}");
        assert_eq!(units(&world, &sale).await, (17, Some(10)), "committed, not given");
        world.redis(&["RENAME", &away, &meta]).await;
        for _ in 0..2 {
            world.cli(&["sale", "top-up", "unnamed", "7", "--grant", &grant_of(&said)]).exits(0);
            assert_eq!(units(&world, &sale).await, (17, Some(17)));
        }
        world.finish().await;
    });
}

#[test]
fn a_top_up_says_its_name_before_it_acts_so_that_a_killed_one_can_be_repeated() {
    run(async {
        let world = World::with(&[], &[]).await;
        let sale = world.sale("killed", 10, None).await;
        let said = world.cli_with_faults("F23=return", &["sale", "top-up", "killed", "7"]);
        assert_eq!(said.code, None, "{said:?}");
        world.cli(&["sale", "top-up", "killed", "7", "--grant", &grant_of(&said)]).exits(0);
        assert_eq!(units(&world, &sale).await, (17, Some(17)));
        world.finish().await;
    });
}
