//! The image: what is in it, who runs in it, what it reads from files, and how each role works and ends in it.

use crate::engine::{Given, engine, for_the_image, inspected, until_ok};
use crate::support::basics::answer::Answer;
use crate::support::processes::own_redis;
use crate::support::processes::programs::Folder;
use crate::support::world::{World, eventually, run, time_passes};
use seckill::roles::Role::{self, Consumer, Relay};
use serde_json::Value;

/// More than this is a mistake in the Dockerfile: the base has 25 MB, the program about as many.
const SIZE_MAX: u64 = 100_000_000;

#[test]
fn the_image_is_small_has_no_shell_no_root_and_no_health_check_of_its_own() {
    let size: u64 = inspected("seckill", "{{.Size}}").parse().unwrap();
    eprintln!("the image has {size} bytes");
    assert!(size < SIZE_MAX, "{size} bytes");
    assert_eq!(inspected("seckill", "{{.Config.User}}"), "65532:65532");
    assert_eq!(inspected("seckill", "{{json .Config.Entrypoint}}"), r#"["/usr/local/bin/seckill"]"#);
    assert_eq!(inspected("seckill", "{{.Config.StopSignal}}"), "SIGTERM");
    // The one who runs it asks /livez and /readyz.
    let all: Value = serde_json::from_str(&engine(&["image", "inspect", "seckill"]).exits(0).out).unwrap();
    let check = ["Healthcheck", "HealthCheck"].map(|key| (&all[0][key], &all[0]["Config"][key]));
    assert!(check.iter().all(|(own, config)| own.is_null() && config.is_null()), "{check:?}");
    for shell in ["/bin/sh", "/bin/bash", "/busybox/sh"] {
        let run = Given { options: &["--entrypoint", shell], ..Given::default() }.runs(&["-c", "true"]);
        assert_ne!(run.code, Some(0), "{shell} is there");
    }
    let version = Given::default().runs(&["--version"]).exits(0).out;
    let commit = std::env::var("EXPECTED_COMMIT").expect("set by make image-test");
    assert_eq!(version.trim(), format!("seckill {} ({commit})", env!("CARGO_PKG_VERSION")), "with its commit");
}

#[test]
fn each_role_runs_without_rights_sells_and_ends_with_0() {
    run(async {
        let mut world = World::with(&[], &[]).await;
        let sale = world.sale("image", 100, Some(1)).await;
        let started = Role::ALL.map(|role| (role.name(), world.role_in_container(role.name(), &[])));
        for (role, (container, public, admin)) in &started {
            until_ok(&format!("{admin}/readyz")).await;
            assert_eq!(container.status("Uid"), "65532\t65532\t65532\t65532", "{role}");
            assert_eq!(container.status("Gid"), "65532\t65532\t65532\t65532", "{role}");
            assert_eq!(container.status("CapEff"), "0000000000000000", "{role}");
            assert_eq!(container.status("NoNewPrivs"), "1", "{role}");
            assert_eq!(container.inspected("{{.HostConfig.ReadonlyRootfs}}"), "true", "{role}");
            if *role == "api" {
                world.api = public.clone();
                until_ok(&format!("{public}/v1/sales")).await;
            }
        }
        for user in ["alice", "bob", "carol"] {
            let id = world.bought(&sale, user).await;
            eventually("the order is confirmed", async || {
                world.status(&sale, user, &id.to_string(), 5).await.text("status") == "CONFIRMED"
            })
            .await;
        }
        assert_eq!(world.settled(&sale).await.counted.ordered, 3);
        for (role, (container, ..)) in &started {
            container.terminate();
            assert_eq!(container.ended().await, 0, "{role}: {}", container.log());
            assert!(container.log().contains("stopped"), "{role}: {}", container.log());
        }
        world.finish().await;
    });
}

#[test]
fn purchases_under_way_at_sigterm_get_their_result_and_the_container_ends_with_0() {
    run(async {
        let mut redis = own_redis::start("image-redis").await;
        let mut world = World::on_redis(&redis.url(), "imageterm", &[Relay, Consumer], &[]).await;
        let (api, public, admin) = world.role_in_container("api", &[]);
        world.api = public;
        let sale = world.sale("imageterm", 100, Some(1)).await;
        until_ok(&format!("{}/v1/sales", world.api)).await;
        eventually("it sells", async || world.buy(&sale, "first", 1, None).await.status == 202).await;
        redis.pause().unwrap();
        let buying: Vec<_> = (0..20)
            .map(|n| {
                let path = format!("/v1/sales/{sale}/orders");
                let request = world.request(reqwest::Method::POST, &path, &format!("buyer-{n}"));
                tokio::spawn(Answer::of(request.json(&serde_json::json!({}))))
            })
            .collect();
        time_passes(700).await;
        assert!(buying.iter().all(|one| !one.is_finished()), "all are under way");
        api.terminate();
        eventually("it says that it drains", async || {
            let Ok(answer) = reqwest::get(format!("{admin}/readyz")).await else { return false };
            answer.status() == 503 && answer.text().await.is_ok_and(|body| body.contains("\"draining\":true"))
        })
        .await;
        redis.resume().unwrap();
        for one in buying {
            let answer = one.await.unwrap();
            assert_eq!(answer.status, 202, "{answer:?}");
        }
        assert_eq!(api.ended().await, 0, "{}", api.log());
        assert_eq!(world.settled(&sale).await.counted.ordered, 21);
        world.finish().await;
    });
}

const MOUNT: &str = "/run/secrets/seckill";

#[test]
fn settings_come_from_files_and_the_environment_and_secrets_from_a_file_only_its_user_may_read() {
    let folder = Folder::new("image-files");
    let write = |name: &str, text: &str, mode: u32| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        for_the_image(&path, mode);
        format!("{MOUNT}/{name}")
    };
    let settings = write("settings.toml", "[p3_relay]\nwindow_max = 101\n[p1_entry]\nuser_rate_per_s = 7\n", 0o444);
    let access = "access-secret-from-a-file-of-32-bytes-or-more";
    let secrets = write("secrets.toml", &format!("[auth]\nsecret = \"{access}\"\n"), 0o400);
    let mount = format!("--volume={}:{MOUNT}:ro", folder.path().display());
    let env = ["p3_relay.window_max=102".to_owned()];
    let given = Given { sets: &env, options: &[&mount] };
    let files = ["--config", "/etc/seckill/production.toml", "--config", &settings, "--config", &secrets];
    let shown = given.runs(&[&files[..], &["config", "show", "--json"]].concat()).exits(0).json();
    assert_eq!(shown["p3_relay"]["window_max"], 102, "the environment is above the files");
    assert_eq!(shown["p1_entry"]["user_rate_per_s"], 7, "a later file is above an earlier one");
    assert_eq!((&shown["rabbitmq"]["queues"], &shown["mysql"]["pool_max"]), (&4.into(), &16.into()), "production.toml");
    assert_eq!((&shown["http"]["listen"], &shown["log"]["format"]), (&"0.0.0.0:8080".into(), &"json".into()));
    assert_eq!(shown["auth"]["secret"], "***");
    // The secret of the file signs.
    let token = given.runs(&[&files[..], &["token", "mint", "--sub", "alice"]].concat()).exits(0).out;
    let other =
        given.runs(&["--set", &format!("auth.secret={access}"), "token", "mint", "--sub", "alice"]).exits(0).out;
    let head = |token: &str| token.trim().split('.').next().unwrap().to_owned();
    assert_eq!((token.trim().split('.').count(), head(&token)), (3, head(&other)));
    // A file that its user may not read is named, and nothing is started without it.
    let closed = folder.path().join("secrets.toml");
    std::os::unix::fs::chown(&closed, Some(0), Some(0)).unwrap();
    let refused = given.runs(&["--config", &secrets, "config", "check"]).exits(64);
    assert!(refused.err.contains(&secrets) && !refused.err.contains(access), "{refused:?}");
}
