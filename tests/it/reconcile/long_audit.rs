//! An audit that lasts: a person sees on stderr what it does, a program gets its JSON and nothing else.

use crate::support::world::{World, run};
use seckill::roles::Role::{Api, Consumer, Relay};

/// The first count of the outcomes takes four seconds.
const SLOW: &str = "slow_audit=1*return(4000)";

#[test]
fn an_audit_that_lasts_says_what_it_does() {
    run(async {
        let world = World::with(&[Api, Relay, Consumer], &[]).await;
        let sale = world.sale("patience", 100, Some(1)).await;
        world.bought(&sale, "alice").await;
        assert!(world.settled(&sale).await.consistent());
        let said = world.cli_with_faults(SLOW, &["audit", "--now"]).exits(0);
        let words = said.err.lines().find(|line| line.starts_with("sale patience, ")).unwrap_or_default();
        assert!(words.ends_with(" s: counting the outcomes in the database"), "{said:?}");
        let quiet = world.cli_with_faults(SLOW, &["audit", "--now", "--json"]).exits(0);
        assert_eq!(quiet.json()["consistent"], true);
        assert!(!quiet.err.contains("sale patience"), "a program gets nothing else: {quiet:?}");
        world.finish().await;
    });
}
