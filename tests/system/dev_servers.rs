//! The private servers, for real: they start, keep their data through kill -9, and leave nothing behind.

use crate::support::processes::programs::{Folder, no_process_in, runs};
use crate::support::world::fault_injection::{queue, redis, sql, try_sql};
use crate::support::world::run_waiting;
use seckill::dev::{DevError, PrivateServers, ServerKind};

#[test]
fn servers_keep_their_data_through_kill_9_and_stop_leaves_no_process() {
    run_waiting(async {
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

        // A death that was not ordered; and a server that is stopped (SIGSTOP) can still be restarted and stopped.
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
        no_process_in(folder.path()).await;

        // Another start on the same folder finds the data, on whatever port.
        let again = PrivateServers::start(&dir, &|_| ()).await.unwrap();
        assert_eq!(redis(&again.urls().redis_url, &["GET", "kept"]).await, "yes");
        queue(&again.urls().amqp_url, true).await;
        let pids = again.pids();
        drop(again);
        assert!(pids.values().all(|pid| !runs(*pid)));
    });
}
