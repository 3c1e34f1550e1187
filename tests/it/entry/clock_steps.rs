//! An api process whose clock jumps back: ids go on rising, and nobody is refused (row A2).

use crate::support::killable::ProcessOptions;
use crate::support::programs::scratch;
use crate::support::world::{World, run};
use crate::support::wrong_clock::offset_by;
use seckill::roles::Role;

#[test]
fn ids_go_on_rising_when_the_clock_of_an_api_jumps_back() {
    run(async {
        let mut world = World::with(&[Role::Relay, Role::Consumer], &[]).await;
        let sale = world.sale_with("clock", 100, |sale| sale.starts_at_ms -= 3_600_000).await;
        // libfaketime reads the offset from the file at each call.
        let offset = scratch("clock_steps").join("offset");
        let set_offset = |text: &str| std::fs::write(&offset, text).unwrap();
        set_offset("+0s");
        let from_file =
            [("FAKETIME_TIMESTAMP_FILE", offset.to_str().unwrap().to_owned()), ("FAKETIME_NO_CACHE", "1".into())];
        let env = offset_by("+0s").into_iter().filter(|(name, _)| *name != "FAKETIME").chain(from_file).collect();
        let api = world.spawn("api", ProcessOptions { env, ..ProcessOptions::default() });
        world.api = api.api_url();
        api.serves_buyers().await;
        let mut ids = vec![];
        for step in ["+0s", "-20s", "-10s", "-25s", "+5s"] {
            set_offset(step);
            for buyer in 0..5 {
                ids.push(world.bought(&sale, &format!("buyer{step}{buyer}")).await);
            }
        }
        assert!(ids.is_sorted_by(|one, next| one < next), "{ids:?}");
        api.kill();
        assert_eq!(world.settled(&sale).await.counted.ordered, 25);
        world.finish().await;
    });
}
