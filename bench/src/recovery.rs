//! `recovery`: kill -9 of each role and each server, one at a time, while buyers come a hundred a second. Reported is the time
//! until a purchase works again, accepted and confirmed: of a role from the kill (a new process is started at once, as a
//! supervisor would), of a server from the moment it answers again. What was in flight is audited at the end.

use super::bar::Bar;
use super::environment::Environment;
use super::recovery_probe::RecoveryProbe;
use super::sizes::{Sizes, Spinner};
use super::steady_crowd::ENOUGH;
use seckill::cli::Failure;
use seckill::dev::ServerKind;
use seckill::domain::ids::SaleId;
use seckill::roles::Role;
use serde_json::json;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// Most after the kill of a role, seconds.
const BAR_ROLE_S: f64 = 2.0;
/// Most after the host of a server vanished, seconds.
const BAR_HOST_S: f64 = 10.0;
/// Most after a server answers again, seconds.
const BAR_SERVER_S: f64 = 3.0;
/// Numbers set aside for the buyers of one kill; far more than come.
const BUYERS: u64 = 100_000;

/// Who is killed.
#[derive(Debug, Clone, Copy)]
enum Victim {
    Role(Role),
    Server(ServerKind),
    /// Of a server.
    Host(ServerKind),
}

/// Seconds until a purchase worked again; `None`: not in time.
type Took = BTreeMap<&'static str, Option<f64>>;

/// Kills everything once.
pub(super) async fn measure(
    environment: &mut Environment,
    sizes: &Sizes,
    spinner: &Spinner,
) -> Result<Vec<Bar>, Failure> {
    let sale = environment.sale("recovery", ENOUGH, None).await?;
    let (mut roles, mut servers) = (Took::new(), Took::new());
    for role in Role::ALL {
        spinner.say(role.name());
        if let Some(took) = one(environment, sizes, &sale, Victim::Role(role)).await? {
            roles.insert(role.name(), took);
        }
    }
    for kind in ServerKind::ALL {
        spinner.say(kind.name());
        if let Some(took) = one(environment, sizes, &sale, Victim::Server(kind)).await? {
            servers.insert(kind.name(), took);
        }
    }
    let mut bars = vec![bar("recovery", "from kill -9 of a role", &roles, sizes).at_most(BAR_ROLE_S)];
    if !servers.is_empty() {
        let since = "from the moment a killed server answers again";
        bars.push(bar("recovery_server", since, &servers, sizes).at_most(BAR_SERVER_S));
    }
    Ok(bars)
}

/// Has the host of each server vanish once, in an environment that has such.
pub(super) async fn hosts(environment: &mut Environment, sizes: &Sizes, spinner: &Spinner) -> Result<Bar, Failure> {
    environment.all_roles().await?;
    let sale = environment.sale("recovery-host", ENOUGH, None).await?;
    let mut took = Took::new();
    for kind in ServerKind::ALL {
        spinner.say(&format!("the host of {} vanishes", kind.name()));
        if let Some(seconds) = one(environment, sizes, &sale, Victim::Host(kind)).await? {
            took.insert(kind.name(), seconds);
        }
    }
    let since = "from when the host of a server vanished (connections go dumb, new ones go through)";
    let (landed, sold) = environment.landed_and_sold(&sale).await?;
    let bar = bar("recovery_host", since, &took, sizes).at_most(BAR_HOST_S);
    let lost = if landed == sold { String::new() } else { format!("; ONLY {landed} of {sold} landed") };
    let (note, more) = (format!("{}{lost}", bar.note), json!({ "seconds": took, "landed": landed, "sold": sold }));
    Ok(bar.note(note).more(more))
}

/// One kill, from steady work to steady work. `None`: the server was given, so it is left alone.
async fn one(
    environment: &mut Environment,
    sizes: &Sizes,
    sale: &SaleId,
    victim: Victim,
) -> Result<Option<Option<f64>>, Failure> {
    environment.go_on()?;
    let first = environment.numbers(BUYERS);
    let probe = RecoveryProbe::start(environment, sale, first).await?;
    let steady = Instant::now();
    let works = probe.first(steady, steady, sizes.patience).await;
    works.ok_or_else(|| Failure::Failed("recovery: no purchase works before anything was killed".to_owned()))?;
    let killed = Instant::now();
    let from = match victim {
        Victim::Role(role) => {
            environment.kill_role(role).await?;
            killed
        }
        Victim::Server(kind) if environment.kill_server(kind).await? => Instant::now(),
        Victim::Host(kind) if environment.vanish(kind) => killed,
        Victim::Server(_) | Victim::Host(_) => {
            probe.end().await?;
            return Ok(None);
        }
    };
    let success = probe.first(killed, from, sizes.patience).await;
    let took = success.map(|success| success.confirmed.saturating_duration_since(from).as_secs_f64());
    probe.end().await?;
    environment.all_roles().await?;
    environment.servers.redis.wait_connected(Duration::from_secs(5)).await;
    environment.drained(sale, sizes.patience, &|_landed, _sold| {}).await?;
    Ok(Some(took))
}

fn bar(name: &'static str, since: &str, took: &Took, sizes: &Sizes) -> Bar {
    let never = sizes.patience.as_secs_f64();
    let words: Vec<String> = took
        .iter()
        .map(|(name, took)| took.map_or_else(|| format!("{name} NOT BACK"), |took| format!("{name} {took:.2}")))
        .collect();
    let worst = took.values().map(|took| took.unwrap_or(never)).fold(0.0, f64::max);
    let note = format!("worst, {since}, to the first purchase accepted and confirmed: {}", words.join(", "));
    Bar::of(name, worst, "s").note(note).more(json!({ "seconds": took }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_slowest_decides_and_one_that_never_came_back_fails() {
        use clap::Parser;
        #[derive(Parser)]
        struct RecoveryLine {
            #[command(flatten)]
            args: crate::BenchArgs,
        }
        let sizes = Sizes::of(&RecoveryLine::parse_from(["bench"]).args);
        let good = Took::from([("api", Some(0.5)), ("relay", Some(1.5))]);
        let good = bar("recovery", "", &good, &sizes).at_most(BAR_ROLE_S);
        assert_eq!((good.value, good.holds), (1.5, Some(true)));
        let bad = Took::from([("api", Some(0.5)), ("relay", None)]);
        let bad = bar("recovery", "", &bad, &sizes).at_most(BAR_ROLE_S);
        assert!(bad.holds == Some(false) && bad.note.contains("relay NOT BACK"), "{bad:?}");
    }
}
