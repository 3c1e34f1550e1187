//! A cluster with access rules (A11): the user that docs/operations.md describes can do everything, and a wrong password is
//! reported as that.

use crate::support::basics::documented_commands::redis_account;
use crate::support::processes::doctor::doctor as doctor_says;
use crate::support::processes::programs::call;
use crate::support::processes::redis_sets::Cluster;
use crate::support::world::clusters::SHARDS;
use crate::support::world::{World, eventually, run_waiting};
use seckill::roles::Role;

fn with_login(cluster: &Cluster, login: &str) -> String {
    cluster.url().replacen("//", &format!("//{login}@"), 1)
}

async fn nothing_was_denied(cluster: &Cluster) {
    for node in cluster.nodes() {
        let denied = node.call(&["ACL", "LOG"]).await;
        assert_eq!(denied.as_array().map(Vec::len), Some(0), "{denied}");
    }
}

#[test]
fn the_user_of_the_manual_suffices_and_a_wrong_password_is_reported() {
    run_waiting(async {
        let cluster = Cluster::start(3, 1, &[]).await;
        let name = "cluster-acl";
        let account = redis_account(name);
        for node in cluster.nodes() {
            node.call(&account.iter().map(String::as_str).collect::<Vec<_>>()).await;
            node.call(&["ACL", "LOG", "RESET"]).await;
        }
        let shards = format!("redis.shards={SHARDS}");
        let set = ["redis.mode=cluster", &shards, "redis.wait_replicas=1"];
        let url = with_login(&cluster, "seckill:PASSWORD");
        let world = World::on_redis(&url, name, &Role::ALL, &set).await;
        let sale = world.sale("acl", 20, Some(1)).await;
        nothing_was_denied(&cluster).await;
        for n in 0..20 {
            let (user, token) = (format!("b{n}"), world.token(&sale, &format!("b{n}")).await.0);
            eventually("sold", async || world.buy(&sale, &user, 1, Some(&token)).await.status == 202).await;
            nothing_was_denied(&cluster).await;
        }
        assert_eq!(world.buy(&sale, "late", 1, None).await.status, 410);
        assert_eq!(world.settled(&sale).await.counted.ordered, 20);

        let args = |url: &str| {
            let mut sets = world.own_sets();
            sets[0] = format!("redis.url={url}");
            let sets = sets.into_iter().chain(["redis.wait_replicas=1".to_owned()]);
            let mut args = vec!["--data-dir".to_owned(), "/nonexistent".to_owned()];
            args.extend(sets.flat_map(|set| ["--set".to_owned(), set]));
            args.extend(["doctor".to_owned()]);
            args
        };
        let doctor = |url: &str| {
            let args = args(url);
            let (code, out, err) = call(&args.iter().map(String::as_str).collect::<Vec<_>>());
            (code, out + &err)
        };
        let (_, said) = doctor(&url);
        assert!(!said.contains("NOPERM") && said.contains("cluster-require-full-coverage"), "{said}");
        nothing_was_denied(&cluster).await;
        let (code, said) = doctor(&with_login(&cluster, "seckill:wrong"));
        assert_ne!(code, Some(0), "{said}");
        assert!(said.contains("WRONGPASS"), "{said}");
        world.finish().await;
    });
}

#[test]
fn doctor_sees_a_cluster_that_has_lost_a_part() {
    run_waiting(async {
        let cluster = Cluster::start(3, 0, &["cluster-require-full-coverage no"]).await;
        let shards = format!("redis.shards={SHARDS}");
        let world = World::on_redis(&cluster.url(), "cluster-part", &[], &["redis.mode=cluster", &shards]).await;
        world.sale("part", 10, None).await;
        let of_redis = |verdict: &str| {
            let (_, found, text) = doctor_says(&world.own_sets());
            let lines: Vec<String> = found(verdict).into_iter().filter(|line| line.contains("cluster_")).collect();
            (lines, text)
        };
        let (wrong, text) = of_redis("wrong");
        assert_eq!((wrong.len(), of_redis("fine").0.len()), (0, 6), "cluster_state and cluster_size of three: {text}");
        cluster.nodes()[2].kill().await;
        let lost = ["redis cluster_state", "redis cluster_state"];
        eventually("two of three servers say it", async || of_redis("wrong").0 == lost).await;
        world.stop().await;
    });
}

/// Any replica may be promoted: what it does not keep is lost then.
#[test]
fn doctor_names_a_replica_that_would_not_keep_what_it_has() {
    run_waiting(async {
        let cluster = Cluster::start(3, 1, &[]).await;
        let shards = format!("redis.shards={SHARDS}");
        let set = ["redis.mode=cluster", &shards, "redis.wait_replicas=1"];
        let world = World::on_redis(&cluster.url(), "cluster-replica", &[], &set).await;
        world.sale("replica", 10, None).await;
        let sets = [world.own_sets(), vec!["redis.wait_replicas=1".to_owned()]].concat();
        let of_replicas = |verdict: &str| {
            let (_, found, text) = doctor_says(&sets);
            let lines: Vec<String> = found(verdict).into_iter().filter(|line| line.contains("of replica")).collect();
            (lines, text)
        };
        let (fine, text) = of_replicas("fine");
        assert_eq!((of_replicas("wrong").0.len(), fine.len()), (0, 12), "four settings of three replicas: {text}");
        let replica = cluster.replica_of(&cluster.nodes()[0]).await;
        replica.call(&["CONFIG", "SET", "appendfsync", "everysec"]).await;
        let (wrong, text) = of_replicas("wrong");
        assert_eq!(wrong, [format!("redis appendfsync of replica 127.0.0.1:{}", replica.port())], "{text}");
        world.stop().await;
    });
}
