//! `growth_sales_idle`: what sales without a purchase cost the database and Redis, for one and for a thousand live sales, each with one
//! and with four api processes. Something may grow with the sales and something with the processes, nothing with both.

use super::bar::Bar;
use super::baseline::{mysql_status, redis_info};
use super::environment::Environment;
use super::sizes::Spinner;
use seckill::cli::Failure;
use serde::Serialize;
use serde_json::json;
use std::time::{Duration, Instant};

/// Live sales of a measurement.
const SALES: [u32; 2] = [1, 1_000];
/// Processes of the api role.
const PROCESSES: [u32; 2] = [1, 4];
/// Stock of each sale.
const STOCK: i64 = 10;
/// What a start or a creation causes is over after this time.
const SETTLED: Duration = Duration::from_secs(12);
/// Each live sale is checked every ten seconds, so this holds as many checks of each.
const COUNTED: Duration = Duration::from_secs(30);
/// Statements or commands a second for each sale and further process. What the servers do by themselves differs by some ten a
/// second from one time to another, which is up to 0.01 of these sales and processes; a check of each sale by each process is 0.1.
const BAR: f64 = 0.02;

/// Of one number of sales and of processes, each a second.
#[derive(Debug, Clone, Copy, Serialize)]
struct IdlePoint {
    sales: u32,
    processes: u32,
    statements: f64,
    commands: f64,
}

/// Measures all four. Every role runs, and nothing is under way.
pub(super) async fn measure(environment: &mut Environment, spinner: &Spinner) -> Result<Bar, Failure> {
    let (mut points, mut made) = (Vec::new(), 0);
    for sales in SALES {
        while made < sales {
            spinner.say(&format!("sale {made} of {sales}"));
            environment.sale("idle", STOCK, Some(1)).await?;
            made += 1;
        }
        for processes in PROCESSES {
            environment.api_processes(processes).await?;
            spinner.say(&format!("{sales} sales, {processes} api processes"));
            points.push(counted(environment, sales, processes).await?);
        }
    }
    environment.api_processes(1).await?;
    Ok(bar(&points))
}

async fn counted(environment: &Environment, sales: u32, processes: u32) -> Result<IdlePoint, Failure> {
    let servers = &environment.servers;
    let so_far = async || {
        let statements = mysql_status::statements(&servers.db).await?;
        Ok::<_, Failure>((statements, redis_info::commands_count(&servers.redis).await?))
    };
    environment.stop.sleep(SETTLED).await;
    let (begun, (statements, commands)) = (Instant::now(), so_far().await?);
    environment.stop.sleep(COUNTED).await;
    let (elapsed_s, after) = (begun.elapsed().as_secs_f64(), so_far().await?);
    environment.go_on()?;
    #[expect(clippy::cast_precision_loss, reason = "a count of half a minute; 53 bits are enough")]
    let a_second = |before: u64, after: u64| after.saturating_sub(before) as f64 / elapsed_s;
    let (statements, commands) = (a_second(statements, after.0), a_second(commands, after.1));
    Ok(IdlePoint { sales, processes, statements, commands })
}

/// What the further processes add for the further sales, beyond what each adds without the other.
fn product(points: &[IdlePoint], of: impl Fn(&IdlePoint) -> f64) -> Option<f64> {
    let at = |sales: u32, processes: u32| {
        points.iter().find(|point| (point.sales, point.processes) == (sales, processes)).map(&of)
    };
    let ([few, many], [one, several]) = (SALES, PROCESSES);
    let of_both = (at(many, several)? - at(few, several)?) - (at(many, one)? - at(few, one)?);
    Some(of_both / (f64::from(many - few) * f64::from(several - one)))
}

fn bar(points: &[IdlePoint]) -> Bar {
    let (statements, commands) = (product(points, |point| point.statements), product(points, |point| point.commands));
    // What was not measured does not hold.
    let worst = statements.zip(commands).map_or(f64::INFINITY, |(statements, commands)| statements.max(commands));
    let words = points.iter().map(|point| {
        let IdlePoint { sales, processes, statements, commands } = point;
        format!("{sales} × {processes}: {statements:.0} and {commands:.0}")
    });
    let note = format!(
        "statements or commands a second for each live sale and further api process without a purchase; statements and commands of \
         Redis a second by sales × processes: {}",
        words.collect::<Vec<_>>().join(", ")
    );
    let more = json!({ "points": points, "statements": statements, "commands": commands });
    Bar::of("growth_sales_idle", worst, "/s").at_most(BAR).note(note).more(more)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn points(of_each: f64) -> Vec<IdlePoint> {
        let at = |sales: u32, processes: u32| {
            let both = of_each * f64::from(sales) * f64::from(processes);
            let commands = 20.0 + 0.5 * f64::from(sales) + 9.0 * f64::from(processes);
            IdlePoint { sales, processes, statements: 30.0 + both, commands }
        };
        SALES.iter().flat_map(|sales| PROCESSES.map(|processes| at(*sales, processes))).collect()
    }

    #[test]
    fn only_what_grows_with_both_misses_the_bar() {
        assert_eq!([0.0, 0.1].map(|of_each| bar(&points(of_each)).holds), [Some(true), Some(false)]);
        assert!((bar(&points(0.1)).value - 0.1).abs() < 1e-9);
        assert_eq!(bar(&[]).holds, Some(false), "nothing was measured");
    }
}
