//! The results as Markdown, for `docs/model.md`.

use crate::properties::{LAWS, SIGHTS};
use crate::rows::{Configuration, Expected, Mutant};
use crate::search::{Complete, Found, Lacking, Searched};

const HEAD: &str = "# Model

For readers who want to know what was searched, and what was not. Printed by `tests/model`; a test fails when this
file and the computed results differ (`UPDATE_DOCS=1 cargo test --test model` writes it). `make model` searches
more.

Contents: [What must hold](#what-must-hold) · [Configurations](#configurations) · [Mutations](#mutations) ·
[Orders after CONFIRMED](#orders-after-confirmed) · [Two buckets](#two-buckets) ·
[Mutations of the product](#mutations-of-the-product) · [Two sales in one queue](#two-sales-in-one-queue) ·
[Events](#events) · [Webhooks](#webhooks) · [Drops](#drops) · [Lines](#lines) ·
[The model against the code](#the-model-against-the-code)

The protocol of P2 to P5 is a model in [stateright](https://github.com/stateright/stateright): buyers, Redis, two
relays, a broker, two consumers, the database and a reconciler. The search visits *every* order of their steps, and
every place of a bounded number of faults:

- a script call that its caller gave up, and that runs late or never;
- a relay that crashes or stays dead; an entry claimed by two relays;
- a publish that is lost or returned; a confirm that is lost or late;
- a consumer that crashes at any step, or (in a configuration of its own) goes on after its connection broke; a system
  error of the database; a commit without an answer;
- a restart of Redis; the loss of the broker's data; an operator who gives a parked request up.

In the searches named *an entry of several orders* one call asks for everybody who waits, and what it accepts is one
entry (a stream's) and one message. Entry and message have one fate; each order of the message has its own
transaction, its own copy in the retry queue and its own dead letter.

P5 may land a request at any moment.

The searches about the [books](architecture.md#the-books-units-and-numbers) have fewer steps on the way (two from
the outbox to the database) and more around it: top-ups, cancels, reclaims and closed gaps; a giver that carries
grants from the database to Redis and sleeps or dies between reading the list, `grant.lua` and the mark; a rebuild
in its steps, with leaders that die or sleep while another one rebuilds; trimmed records; a database that is
restored from a backup of any moment; an audit that counts Redis at one moment and reads the database at a later
one.

**A model is not the code.** Two things tie them. Each request moves by the transition table itself
(`seckill::domain::states::next`; P7 says that no step is forbidden there). And the meaning of a database obstacle
comes from `seckill::domain::outcome::after_obstacle`. Everything else was written a second time, from `lua/` and
`src/p2_reserve` to `src/p5_reconcile`; [paths through the models](#the-model-against-the-code) are played on the
code.

The model has one sale on one shard, one unit for each request, and two tries before an entry or a message is parked.
It does not have: several shards and transfers ([a model of their own](#two-buckets)); several sales (one of their own,
[too](#two-sales-in-one-queue)); cumulative
limits; groups (one transaction for many messages); the copy of relay-DLQ entries in the register; more than two
grants, one giver, two operator acts; a person who closes a refusal (only gaps are closed); time (a rebuild waits
until no process holds a request: that stands for `quiet_ms`); more faults than the number given. Two states with the
same 64-bit hash would count as one.
";

pub fn markdown(configurations: &[(Configuration, Found)], mutants: &[(Mutant, [Option<Found>; 2])]) -> String {
    let mut text = format!("{HEAD}\n## What must hold\n\n| law | |\n|---|---|\n");
    for (law, meaning) in LAWS {
        text.push_str(&format!("| {law} | {meaning} |\n"));
    }
    text.push_str(
        "\n## Configurations\n\nEach was searched to its end. N requests, S units. ✗ is expected: it is the price of that\n\
         setting or loss ([guarantees](guarantees.md#durability)).\n\n| configuration | size | states |",
    );
    text.push_str(&LAWS.map(|(law, _)| format!(" {law} |")).concat());
    text.push_str(&format!("\n|---|---|---:|{}\n", "---|".repeat(LAWS.len())));
    for (Configuration { name, setup, .. }, found) in configurations {
        text.push_str(&format!("| {name} | {setup} | {} |", found.states));
        text.push_str(&LAWS.map(|(law, _)| if found.broken.contains_key(law) { " ✗ |" } else { " ✓ |" }).concat());
        text.push('\n');
    }
    text.push_str(NOTES);
    text.push_str("\nThe test also fails unless the search reaches each of these:\n\n| situation | |\n|---|---|\n");
    for (name, meaning) in SIGHTS {
        text.push_str(&format!("| {name} | {meaning} |\n"));
    }
    text.push_str(MUTATIONS);
    for (mutant, [without, with]) in mutants {
        let cells = [(mutant.without_p5, without), (mutant.with_p5, with)]
            .map(|(expected, found)| cell(expected, found.as_ref()));
        let shown = [(mutant.without_p5, without), (mutant.with_p5, with)];
        let steps = shown.into_iter().find_map(|(expected, found)| steps(expected, found.as_ref()));
        text.push_str(&format!("| {} | {} | {} | {} |\n", mutant.name, cells[0], cells[1], steps.unwrap_or_default()));
    }
    text
}

const NOTES: &str = "
Four rows, from *Redis behind the database, answers wait for the disk*, are about a Redis that loses data.
`appendfsync always` excludes that while the disk lives. In three of them relays see an accept before it is on disk,
and a crash takes the part that is not on disk. *Behind the database*: the database has decided a number that Redis
forgot, and the fence detects it; or nothing is left of the forgotten request. *No number shows it*: a forgotten
accept is still on its way when the fence compares, so another request gets its number. The second of the two to
land fails for good with NUMBER_REUSED, and more was accepted than was for sale (P4). P1, P2 and P6 hold in every
row, because the database alone ensures them.

*Asked again*: Redis forgets an accept whose message is on its way, and its buyer repeats the request, which gets
another number. It is one order. P5 closes the number that it is not decided under, and offers its unit again. Until
then more is accepted than was for sale (P4); with a unit too few the buyer gets the answer *sold out*, and may have an
order (P3). A dead letter of the other number stays in the MQ DLQ until Redis gives that number to somebody (P8).

*books*: P3 and P5 break where a server loses data that no other server has. P12 says that the audit reports each
such request whose number is missing. After *the database goes back*, a top-up that it forgot is still for sale in
Redis, and one buyer too many is accepted (P4). *Redis behind*: Redis may forget a grant that is marked as given.
The fence compares numbers and not grants, so the grant is not given again (P10); the audit reports it (P12).

The rows rely on these rules, beyond the steps in the architecture (each is a mutation below):

- An attempt takes its epoch first and judges then whether a request is on its way. It replaces only the very keys
  that it judged (same epoch, still building or not, or still none), and takes its snapshot only while the sale's
  epoch is its own.
- P5 freezes an open sale whose epoch in Redis is not the database's, and rebuilds it. A rebuild that is overtaken
  between its snapshot and its last step opens such a sale.
- A request that only the MQ DLQ has is undecided (U): a rebuild waits for it.
- A giver reads the grants of the sale's epoch, together with that epoch.
- P is counted grant by grant: the grants of the epoch whose id was not in Redis. As a difference of two sums it
  hides units in Redis without a grant: R is as much more as P is less. And Redis has each grant that was marked
  before Redis was counted.
- Orders above the count are added cancelled or not, failures above it are taken away reclaimed or not.
- Closing a gap takes its number, so a late message becomes no order: its request fails. Its unit is W only in the
  sale's epoch: a rebuild has already given the unit of an older gap to Redis.
";

const MUTATIONS: &str = "
## Mutations

Each row leaves one mechanism out, or does it wrongly; the number is its loss window ([register](register.md)). Each
must break the laws that the row names, and the number is the length of a shortest counterexample. A mutation that
breaks nothing fails the test. *Without P5*: the ledger does not count and no process reconciles. *With P5*:
compensation at any moment; \"heals\" means that the search visited everything and every law held. The last column has
the steps to the last law that breaks in the first column, with faults in bold. The two mutations that acknowledge
an unrecorded request (60, 61) never end with P5: the audit finds a request undecided that was acknowledged as
decided (a step that the table forbids, P7), and lands it in vain.

| left out | without P5 | with P5 | a shortest way |
|---|---|---|---|
";

fn cell(expected: Expected, found: Option<&Found>) -> String {
    match (expected, found) {
        (Expected::Breaks(_), Some(found)) => {
            let broken: Vec<_> =
                found.broken.iter().map(|(law, steps)| format!("**{law}** in {}", steps.len())).collect();
            broken.join(", ")
        }
        (Expected::Heals, Some(found)) => format!("heals ({} states)", found.states),
        (Expected::NotThere, _) | (_, None) => "–".to_owned(),
    }
}

fn steps(expected: Expected, found: Option<&Found>) -> Option<String> {
    let Expected::Breaks(laws) = expected else { return None };
    Some(found?.broken.get(laws.last()?)?.join(" → "))
}

const ROWS: &str = "
N buyers, S units. Each of these was searched to its end, and every law holds but those in the last column:

| configuration | size | states | breaks |
|---|---|---:|---|
";

const WITHOUT: &str = "
Each row leaves one mechanism out, and must break the laws that it names. The number is the length of a shortest
counterexample; the last column has the steps to the last of these laws, with faults in bold.

| left out | breaks | a shortest way |
|---|---|---|
";

/// The section of a model beside the first one.
pub fn section<M: Searched + std::fmt::Display>(
    head: &str,
    rows: &[(Complete<M>, Found)],
    reached: &str,
    without: &[(Lacking<M>, Found)],
) -> String {
    let mut text = head.to_owned();
    for (law, meaning) in M::LAWS {
        text.push_str(&format!("| {law} | {meaning} |\n"));
    }
    text.push_str(ROWS);
    for (Complete { name, setup, breaks, .. }, found) in rows {
        let breaks = if breaks.is_empty() { "–".to_owned() } else { breaks.join(", ") };
        text.push_str(&format!("| {name} | {setup} | {} | {breaks} |\n", found.states));
    }
    text.push_str(&format!("\nTogether they reach {reached}:\n\n| situation | |\n|---|---|\n"));
    for (name, meaning) in M::SIGHTS {
        text.push_str(&format!("| {name} | {meaning} |\n"));
    }
    text.push_str(WITHOUT);
    for (Lacking { name, breaks, .. }, found) in without {
        let broken: Vec<_> = found.broken.iter().map(|(law, steps)| format!("**{law}** in {}", steps.len())).collect();
        let steps = breaks.last().and_then(|law| found.broken.get(law)).map(|steps| steps.join(" → "));
        text.push_str(&format!("| {name} | {} | {} |\n", broken.join(", "), steps.unwrap_or_default()));
    }
    text
}
