//! Sales in which nothing happens cost the servers the same whatever number of api processes there is: by the servers' own counters
//! of statements and commands.

use crate::support::basics::database_kind::questions;
use crate::support::basics::time::time_passes;
use crate::support::processes::killable::KillableProcess;
use crate::support::world::fault_injection::breakable_servers;
use crate::support::world::parts::mysql_store::session_of;
use crate::support::world::{World, run_waiting};
use diesel_async::AsyncMysqlConnection;

/// Sales that wait for buyers.
const SALES: i64 = 60;
/// Api processes.
const PROCESSES: i64 = 3;
/// Each sale is checked every ten seconds: once or twice in this time.
const COUNTED_MS: u64 = 11_000;

/// Statements, and commands with those of scripts.
#[derive(Debug, Clone, Copy)]
struct Cost {
    sql: i64,
    redis: i64,
}

impl Cost {
    fn less(self, other: Self) -> Self {
        Self { sql: self.sql - other.sql, redis: self.redis - other.redis }
    }
}

async fn so_far(world: &World, session: &mut AsyncMysqlConnection) -> Cost {
    let stats = world.redis(&["INFO", "commandstats"]).await;
    let calls = stats
        .as_str()
        .unwrap()
        .lines()
        .filter_map(|line| line.split_once(":calls=")?.1.split(',').next()?.parse::<i64>().ok());
    Cost { sql: questions(session).await, redis: calls.sum() }
}

async fn counted(world: &World, session: &mut AsyncMysqlConnection, what: &str) -> Cost {
    // What a start or a creation causes is over.
    time_passes(3_000).await;
    let before = so_far(world, session).await;
    time_passes(COUNTED_MS).await;
    let cost = so_far(world, session).await.less(before);
    eprintln!("{what}: {} statements, {} commands in {COUNTED_MS} ms", cost.sql, cost.redis);
    cost
}

async fn api(world: &World) -> KillableProcess {
    let process = world.process("api", "", &[]);
    process.serves_buyers().await;
    process
}

#[test]
fn nothing_grows_with_idle_sales_times_api_processes() {
    run_waiting(async {
        let servers = breakable_servers().await;
        let world = World::on_breakable(&servers, "idle-sales", &[], &[]).await;
        let mut session = session_of(world.settings.mysql.url.expose()).await;
        world.sale("idle-0", 5, None).await;
        let first = api(&world).await;
        let one_by_one = counted(&world, &mut session, "1 sale, 1 process").await;
        let mut others = Vec::new();
        for _ in 1..PROCESSES {
            others.push(api(&world).await);
        }
        let one_by_all = counted(&world, &mut session, "1 sale, all processes").await;
        for n in 1..SALES {
            world.sale(&format!("idle-{n}"), 5, None).await;
        }
        let all_by_all = counted(&world, &mut session, "all sales, all processes").await;
        others.into_iter().for_each(KillableProcess::kill);
        let all_by_one = counted(&world, &mut session, "all sales, 1 process").await;

        let (in_one, in_all) = (all_by_one.less(one_by_one), all_by_all.less(one_by_all));
        assert!(in_one.sql < SALES / 2, "statements of {SALES} sales: {in_one:?}");
        assert!(in_one.redis < 4 * SALES, "a command or two for each: {in_one:?}");
        let by_processes = in_all.less(in_one);
        assert!(by_processes.sql < SALES / 2, "more processes, more statements for each sale: {by_processes:?}");
        // One more check of each falls into the time, or one less.
        assert!(by_processes.redis < 2 * SALES, "more processes, more commands for each sale: {by_processes:?}");
        first.kill();
        world.stop().await;
    });
}
