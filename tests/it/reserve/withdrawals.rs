//! `lua/withdraw.lua`: unsold units leave a bucket once for each name, never more than there are.

use crate::support::basics::resp::RawRedis;
use crate::support::world::parts::reserve_model::EPOCH;
use crate::support::world::parts::script_model::redis_sale;
use crate::support::world::{World, run};
use seckill::domain::sale::MetaState;
use seckill::store::redis::{Granted, Withdrawn};

#[test]
fn units_leave_a_bucket_once_for_each_name_and_never_more_than_there_are() {
    run(async {
        let world = World::with(&[], &[]).await;
        let (store, mut redis) = (&world.servers.redis, RawRedis::of(&world).await);
        let sale = redis_sale("withdrawn", 5);
        let withdraw = async |epoch, name: &str, units| {
            store.sale_keys.withdraw(&sale.sale_id, (0, epoch, 0), (name, units)).await.unwrap()
        };
        let counted = async || {
            let counted = store.sale_keys.count(&sale.sale_id, 0).await.unwrap().unwrap();
            (counted.stock, counted.granted, counted.grants)
        };
        assert_eq!(withdraw(EPOCH, "withdraw-a", 1).await, Withdrawn::KeysMissing);
        store.sale_keys.activate(&sale, 0, 100, ("first", 10)).await.unwrap();
        for _ in 0..2 {
            assert_eq!(withdraw(EPOCH, "withdraw-a", 3).await, Withdrawn::Units(3), "once");
        }
        assert_eq!(withdraw(EPOCH, "withdraw-a", 100).await, Withdrawn::Units(3), "whatever a repeat asks for");
        assert_eq!((withdraw(EPOCH + 1, "withdraw-b", 3).await, counted().await), (Withdrawn::OtherEpoch, (7, 7, 2)));
        assert_eq!(withdraw(EPOCH, "withdraw-b", 8).await, Withdrawn::Units(7), "never below 0");
        assert_eq!((withdraw(EPOCH, "withdraw-c", 1).await, counted().await), (Withdrawn::Units(0), (0, 0, 4)));
        assert_eq!(store.sale_keys.grant(&sale.sale_id, 0, EPOCH, ("more", 5)).await.unwrap(), Granted::Now);
        assert_eq!(withdraw(EPOCH, "withdraw-c", 1).await, Withdrawn::Units(0), "what came since is not its own");
        store.sale_keys.set_state(&sale.sale_id, 0, MetaState::Frozen, &[MetaState::Loaded]).await.unwrap();
        assert_eq!((withdraw(EPOCH, "withdraw-d", 1).await, counted().await), (Withdrawn::Frozen, (5, 5, 5)));

        // Less was accepted than the database knows of: what seems unsold may be sold.
        store.sale_keys.set_state(&sale.sale_id, 0, MetaState::Open, &[MetaState::Frozen]).await.unwrap();
        let rewound = store.sale_keys.withdraw(&sale.sale_id, (0, EPOCH, 1), ("withdraw-e", 1)).await.unwrap();
        assert_eq!((rewound, counted().await), (Withdrawn::Rewound, (5, 5, 5)));

        // A stock that is no number: refused, and nothing has happened.
        redis.call(&["SET", &store.keys.stock(0, &sale.sale_id), "x"]).await;
        assert!(store.sale_keys.withdraw(&sale.sale_id, (0, EPOCH, 0), ("withdraw-e", 1)).await.is_err());
        assert_eq!(redis.call(&["HLEN", &store.keys.grants(0, &sale.sale_id)]).await.int(), 5);
        world.stop().await;
    });
}

#[test]
fn the_kept_sum_of_many_grants_stays_true() {
    run(async {
        let world = World::with(&[], &[]).await;
        let (store, mut redis) = (&world.servers.redis, RawRedis::of(&world).await);
        let sale = redis_sale("kept-sum", 5);
        store.sale_keys.activate(&sale, 0, 100, ("first", 10)).await.unwrap();
        for no in 0..130 {
            store.sale_keys.grant(&sale.sale_id, 0, EPOCH, (&format!("g{no}"), 2)).await.unwrap();
        }
        let meta = store.keys.meta(0, &sale.sale_id);
        let kept = async |redis: &mut RawRedis| redis.call(&["HGET", &meta, "granted"]).await.text();
        assert!(kept(&mut redis).await.starts_with("131 270 "));
        let withdraw =
            async |name: &str| store.sale_keys.withdraw(&sale.sale_id, (0, EPOCH, 0), (name, 7)).await.unwrap();
        assert_eq!(
            (withdraw("withdraw-a").await, withdraw("withdraw-a").await),
            (Withdrawn::Units(7), Withdrawn::Units(7))
        );
        assert!(kept(&mut redis).await.starts_with("132 263 "), "{}", kept(&mut redis).await);
        // A sum that is not true is left alone: the next grant makes it anew.
        redis.call(&["HSET", &meta, "granted", "131 270 1"]).await;
        assert_eq!(withdraw("withdraw-b").await, Withdrawn::Units(7));
        assert_eq!(kept(&mut redis).await, "131 270 1");
        let counted = store.sale_keys.count(&sale.sale_id, 0).await.unwrap().unwrap();
        assert_eq!((counted.stock, counted.granted, counted.grants), (256, 256, 133));
        world.stop().await;
    });
}
