//! Buyers who have what they wanted when Redis loses data, and what has to be true of them afterwards.

use crate::support::world::clusters::buyer_of;
use crate::support::world::{Answer, World, eventually};
use seckill::domain::ids::SaleId;
use seckill::sales::rows as sales;

/// Buys with the entry that is still finding its way back to Redis: user, token, request id.
pub async fn buy_at_last(world: &World, sale: &SaleId, user: &str) -> (String, String, String) {
    let path = format!("/v1/sales/{sale}");
    eventually("the entry is back", async || {
        Answer::of(world.request(reqwest::Method::GET, &path, user)).await.status == 200
    })
    .await;
    let (token, request_id) = world.token(sale, user).await;
    eventually("it sells", async || world.buy(sale, user, 1, Some(&token)).await.status == 202).await;
    (user.to_owned(), token, request_id)
}

/// After a rebuild: winners are known, losers can still buy, and the rest is sold exactly.
pub async fn sells_again(world: &World, sale: &SaleId, winners: &[(String, String, String)], epoch: u32) {
    eventually("the sale is rebuilt", async || {
        world.buy(sale, &winners[0].0, 1, Some(&winners[0].1)).await.status == 202
            && world.servers.rows.sales.get(sale).await.unwrap().unwrap().epoch == epoch
            && world
                .servers
                .redis
                .sale_keys
                .meta(sale, 0)
                .await
                .unwrap()
                .is_some_and(|meta| meta.state.code() == "open")
    })
    .await;
    for (user, token, request_id) in winners {
        let replay = world.buy(sale, user, 1, Some(token)).await;
        assert_eq!((replay.status, replay.text("request_id").as_str()), (202, request_id.as_str()), "{replay:?}");
    }
    eventually("the entry has seen the new epoch", async || {
        world.buy(sale, &winners[1].0, 1, None).await.code() == "P2-R1"
    })
    .await;
}

/// User, token, request id.
pub type Winner = (String, String, String);

/// Buyers of one shard who get what they want, and have it in the database.
pub async fn winners(world: &World, sale: &SaleId, shard: u16, numbers: std::ops::Range<usize>) -> Vec<Winner> {
    let mut winners = Vec::new();
    for n in numbers {
        winners.push(buy_at_last(world, sale, &buyer_of(shard, n)).await);
    }
    for (user, _, request_id) in &winners {
        let status = world.status(sale, user, request_id, 20).await;
        assert_eq!(status.text("status"), "CONFIRMED", "{status:?}");
    }
    winners
}

/// The rest of the stock is sold, and not one unit more.
pub async fn sells_out(world: World, sale: &SaleId, (sold, stock): (usize, usize)) {
    let mut accepted = sold;
    for n in 0..stock + 20 {
        let answer = world.buy(sale, &format!("rest-{n}"), 1, None).await;
        accepted += usize::from(answer.status == 202);
    }
    assert_eq!(accepted, stock);
    let counted = world.settled(sale).await.counted;
    assert_eq!((counted.ordered, counted.database_stock, counted.redis_stock), (stock.try_into().unwrap(), 0, 0));
    world.finish().await;
}
