//! The private servers, for real: they start, keep their data through kill -9, and leave nothing behind.

use super::hands::{queue, redis, sql, try_sql};
use super::procs::{Folder, nobody_works_in, runs};
use super::world::{eventually, run};
use seckill::dev::{DevError, External, PrivateServers, ServerKind};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::Command;

#[test]
fn servers_keep_their_data_through_kill_9_and_stop_leaves_no_process() {
    run(async {
        let folder = Folder::new("own-servers");
        // Longer than a socket path may be.
        let dir = folder.path().join("long".repeat(25));
        let mut servers = PrivateServers::start(&dir, &|_progress| ()).await.unwrap();
        let urls = servers.urls();

        let second = PrivateServers::start(&dir, &|_| ()).await.err();
        assert!(matches!(second, Some(DevError::Busy { .. })), "{second:?}");

        assert_eq!(redis(&urls.redis_url, &["SET", "kept", "yes"]).await, "OK");
        assert_eq!(redis(&urls.redis_url, &["CONFIG", "GET", "appendfsync"]).await[1], "always");
        sql(&urls.mysql_url, "CREATE TABLE kept (id INT PRIMARY KEY); INSERT INTO kept VALUES (1)").await;
        queue(&urls.amqp_url, false).await;
        servers.add_vhost("one_test").await.unwrap();
        servers.add_vhost("one_test").await.unwrap();
        assert!(servers.add_vhost("\">>").await.is_err());

        let before = servers.pids();
        for kind in ServerKind::ALL {
            servers.kill_and_restart(kind).await.unwrap();
        }
        assert_eq!(servers.urls(), urls);
        assert_eq!(redis(&urls.redis_url, &["GET", "kept"]).await, "yes");
        sql(&urls.mysql_url, "INSERT INTO kept SELECT id + 1 FROM kept").await;
        assert!(try_sql(&urls.mysql_url, "INSERT INTO kept VALUES (2)").await.is_err(), "row 1 was lost");
        queue(&urls.amqp_url, true).await;
        assert!(before.values().all(|pid| !runs(*pid)));

        // A death nobody ordered; and a server that is stopped (SIGSTOP) can still be restarted and stopped.
        assert!(servers.check_and_restart_dead().await.is_empty());
        servers.server(ServerKind::Redis).unwrap().kill().await.unwrap();
        let restarted = servers.check_and_restart_dead().await;
        assert!(matches!(restarted.as_slice(), [(ServerKind::Redis, Ok(()))]), "{restarted:?}");
        assert_eq!(redis(&urls.redis_url, &["GET", "kept"]).await, "yes");
        servers.server(ServerKind::Mysql).unwrap().pause().unwrap();

        let pids = servers.pids();
        assert!(pids.len() == 3 && pids.values().all(|pid| runs(*pid)));
        servers.stop().await.unwrap();
        assert!(pids.values().all(|pid| !runs(*pid)));
        nobody_works_in(folder.path()).await;

        // Another start on the same folder finds the data, on whatever port.
        let again = PrivateServers::start(&dir, &|_| ()).await.unwrap();
        assert_eq!(redis(&again.urls().redis_url, &["GET", "kept"]).await, "yes");
        queue(&again.urls().amqp_url, true).await;
        let pids = again.pids();
        drop(again);
        assert!(pids.values().all(|pid| !runs(*pid)));
    });
}

#[test]
fn kill_9_of_the_parent_leaves_no_server_behind() {
    run(async {
        let folder = Folder::new("killed-parent");
        let mut parent = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "dev_servers::helper_starts_servers_and_waits", "--ignored"])
            .env("SECKILL_TEST_SERVERS_DIR", folder.path())
            .spawn()
            .unwrap();
        let written = folder.path().join("pids.json");
        eventually("servers of the helper", async || {
            assert!(parent.try_wait().unwrap().is_none(), "the helper ended early");
            written.exists()
        })
        .await;
        let pids: BTreeMap<String, u32> = serde_json::from_str(&std::fs::read_to_string(&written).unwrap()).unwrap();
        assert!(pids.len() == 3 && pids.values().all(|pid| runs(*pid)));
        parent.kill().unwrap();
        parent.wait().unwrap();
        eventually("all dead", async || pids.values().all(|pid| !runs(*pid))).await;
        nobody_works_in(folder.path()).await;
    });
}

#[test]
#[ignore = "run as a child process by kill_9_of_the_parent_leaves_no_server_behind"]
fn helper_starts_servers_and_waits() {
    let Some(dir) = std::env::var_os("SECKILL_TEST_SERVERS_DIR").map(PathBuf::from) else { return };
    run(async {
        let servers = PrivateServers::start_beside(External::default(), &dir.join("data"), &|_| ()).await.unwrap();
        std::fs::write(dir.join("pids.new"), serde_json::to_vec(&servers.pids()).unwrap()).unwrap();
        std::fs::rename(dir.join("pids.new"), dir.join("pids.json")).unwrap();
        std::future::pending::<()>().await;
    });
}
