//! Places in the waiting room survive the end of Redis and of every process.

use crate::support::basics::resp::RawRedis;
use crate::support::buyers::waiting_rooms::buyers;
use crate::support::processes::own_redis;
use crate::support::world::{World, run_waiting};
use seckill::domain::sale::Sale;
use seckill::roles::Role;

#[test]
fn every_place_survives_kill_9_of_redis_and_the_end_of_every_process() {
    run_waiting(async {
        let mut redis = own_redis::start("room-kill").await;
        let url = redis.url();
        let mut world = World::on_redis(&url, "room-kill", &[Role::Api], &["p1_entry.room_release_per_s=1"]).await;
        let sale = world.early_room("killed", 10).await;
        let (early, late) = (buyers(0..200), buyers(200..300));
        let all = [early.clone(), late.clone()].concat();
        world.all_enter(&sale, &early).await;
        let kill = async |redis: &mut seckill::dev::Server, world: &World| {
            redis.kill().await.unwrap();
            redis.restart().await.unwrap();
            world.redis_is_back().await;
        };
        let (mut raw, room) = (RawRedis::of(&world).await, world.servers.redis.keys.room(0, &sale));
        let draw = raw.call(&["ZRANGE", &room, "0", "-1", "WITHSCORES"]).await;
        kill(&mut redis, &world).await;
        raw = RawRedis::of(&world).await;
        assert_eq!(raw.call(&["ZRANGE", &room, "0", "-1", "WITHSCORES"]).await, draw, "before the start");

        let started: Sale = world.as_if_started(&sale).await;
        let drawn = world.numbers(&started, &early).await;
        // Redis was down a moment ago: the api's own connection may still be on its way back.
        crate::support::world::eventually("the api has Redis again", async || {
            world.enter_room(&sale, &early[0]).await.status == 200
        })
        .await;
        let tickets: Vec<String> = world.all_enter(&sale, &late).await.iter().map(|a| a.text("ticket")).collect();
        let places = world.numbers(&started, &all).await;
        assert_eq!(places[..200], drawn);
        kill(&mut redis, &world).await;
        world.stop_roles().await;
        world.start_roles(&[Role::Api]).await;
        assert_eq!(world.numbers(&started, &all).await, places, "after the start");
        let ttl = RawRedis::of(&world).await.call(&["PTTL", &room]).await.int();
        assert!(ttl > 24 * 3_600_000, "the room goes a day after the sale, not before: {ttl}");
        for (at, ticket) in tickets.iter().enumerate() {
            let answer = world.ask_place(&sale, &late[at], ticket).await;
            assert_eq!((answer.status, answer.json["place"].as_u64()), (200, Some(places[200 + at])), "{answer:?}");
        }
        world.stop().await;
    });
}
