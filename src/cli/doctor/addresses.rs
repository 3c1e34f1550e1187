//! Each address of a server that has several (`rabbitmq.urls`, `mysql.urls`): whether it can be used, which it is, and whether the
//! database there keeps what it commits.

use super::advice;
use super::check::{CheckVerdict, DoctorCheck};
use crate::store::mysql::checks::Check;
use crate::store::mysql::{AddressState, Db, address_states};
use crate::store::rabbit::{RabbitConfig, node_infos};

/// Nothing of a broker with one address: the other checks say whether it answers.
pub(super) async fn rabbitmq(config: &RabbitConfig) -> Vec<DoctorCheck> {
    if config.urls.len() < 2 {
        return Vec::new();
    }
    let nodes = node_infos(config).await.into_iter();
    let checks = nodes.map(|(address, info)| match info {
        Ok(info) => address_check("rabbitmq", &address, format!("{} {}", info.product, info.version), true),
        Err(error) => address_check("rabbitmq", &address, error.to_string(), false),
    });
    checks.collect()
}

/// Nothing of a database with one address.
pub(super) async fn mysql(db: &Db) -> Vec<DoctorCheck> {
    let states = address_states(db).await;
    if states.len() < 2 {
        return Vec::new();
    }
    let primaries = states.iter().filter(|state| matches!(state.found, Ok("takes writes"))).count();
    let check = |state: &AddressState| match &state.found {
        Ok(found) => address_check("mysql", &state.address, (*found).to_owned(), true),
        Err(error) => address_check("mysql", &state.address, error.clone(), false),
    };
    let mut checks: Vec<DoctorCheck> = states.iter().map(check).collect();
    // The other checks are of the server in use. Any of these is in use after a fail-over, and its settings are not checked then.
    checks.extend(states.iter().flat_map(|state| state.of_disk.iter().map(|setting| of_disk(&state.address, setting))));
    checks.push(
        DoctorCheck::new("mysql", "addresses that take writes, without Galera", primaries.to_string(), "one at most")
            .judged(
                primaries < 2,
                CheckVerdict::Wrong,
                "processes that start now write to the first, others to the second: their orders never meet",
                "set read_only = 1 in my.cnf of each server, and let the fail-over lift it on the primary alone",
            ),
    );
    checks
}

fn of_disk(address: &str, setting: &Check) -> DoctorCheck {
    let advice::Advice { why, change, .. } = advice::mysql(setting.name);
    let name = format!("{} of {address}", setting.name);
    DoctorCheck::new("mysql", name, setting.value.clone(), setting.expected).judged(
        setting.ok,
        CheckVerdict::Wrong,
        why,
        change,
    )
}

fn address_check(server: &'static str, address: &str, value: String, ok: bool) -> DoctorCheck {
    DoctorCheck::new(server, format!("address {address}"), value, "answers").judged(
        ok,
        CheckVerdict::Warning,
        "processes go on with the other addresses; the next failure finds one fewer",
        "start it, or take it off the list",
    )
}
