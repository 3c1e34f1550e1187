//! The results as Markdown, for `docs/model.md`.

use crate::properties::{LAWS, SIGHTS};
use crate::rows::{Configuration, Expected, Mutant};
use crate::search::Found;

const HEAD: &str = "# Model

Printed by `tests/model`; a test fails when this file and what was computed differ
(`UPDATE_DOCS=1 cargo test --test model` writes it). `make model` searches more.

The protocol of P2 to P5 as a model in [stateright](https://github.com/stateright/stateright): buyers, Redis,
two relays, a broker, two consumers, the database and a reconciler. The search visits *every* order of their
steps, and every place of a bounded number of faults: a script call that nobody waits for any more and that
runs late or never; a relay that crashes or stays dead; a publish that is lost or returned; a confirm that is
lost or comes too late; an entry claimed by two; a consumer that crashes at any step; a system error of the
database; a commit that is not answered; a restart of Redis; an operator who gives a parked request up; the
broker's data gone. P5 may land a request at any moment.

The searches about the [books](architecture.md#the-books-units-and-numbers) have less on the way (from the outbox
to the database in two steps) and more around it: top-ups, cancels, reclaims and write-offs of gaps; a giver that
carries grants from the database to Redis and sleeps or dies between reading the list, `grant.lua` and the mark;
a rebuild in its steps, with leaders that die or sleep while another one rebuilds; trimmed records; a database
that comes back from a backup taken at any moment; an audit that counts Redis at one moment and reads the
database at a later one.

**A model is not the code.** Two things tie them: each request moves by the transition table itself
(`seckill::domain::states::next`; P7 says that no step is forbidden there), and what an obstacle of the
database means is asked of `seckill::domain::outcome::after_obstacle`. The rest was written down a second time,
from `lua/` and `src/p2_reserve` to `src/p5_reconcile`; the integration tests hold the code to it.

It covers one sale on one shard, one unit a request, two tries before an entry or a message is parked. It does
not cover: several shards and units moved between them (T is 0), several sales, cumulative limits; groups (one
transaction for many messages); the copy of relay-DLQ entries in the register; more than two grants, one giver,
two things that an operator does; a person who closes a refusal (only gaps are closed); time (a rebuild waits
until nothing is in any hand: `quiet_ms` stands for that); a request that is repeated after Redis forgot it while
a message of it is on its way; faults beyond the number given. Two states with one 64-bit hash would be taken for
one.
";

pub fn markdown(configurations: &[(Configuration, Found)], mutants: &[(Mutant, [Option<Found>; 2])]) -> String {
    let mut text = format!("{HEAD}\n## What must hold\n\n| law | |\n|---|---|\n");
    for (law, meaning) in LAWS {
        text.push_str(&format!("| {law} | {meaning} |\n"));
    }
    text.push_str(
        "\n## Configurations\n\nSearched to the end. N requests, S units. ✗ is expected there: the price of \
         that setting or loss ([guarantees](guarantees.md#durability)).\n\n| configuration | size | states |",
    );
    text.push_str(&LAWS.map(|(law, _)| format!(" {law} |")).concat());
    text.push_str(&format!("\n|---|---|---:|{}\n", "---|".repeat(LAWS.len())));
    for (Configuration { name, setup, .. }, found) in configurations {
        text.push_str(&format!("| {name} | {setup} | {} |", found.states));
        text.push_str(&LAWS.map(|(law, _)| if found.broken.contains_key(law) { " ✗ |" } else { " ✓ |" }).concat());
        text.push('\n');
    }
    text.push_str(NOTES);
    text.push_str("\nReached on the way, or the test fails: ");
    text.push_str(&SIGHTS.map(|(name, meaning)| format!("*{name}* ({meaning})")).join(", "));
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
The last four rows before the books are about a Redis that loses data, which `appendfsync always` excludes while
the disk lives. In three of them relays see an accept before it is on disk, and a crash takes what is not.
*Behind the database*: the database has decided a number that Redis forgot, and the fence sees it; or nothing is left
of what was forgotten.
*No number shows it*: a forgotten accept is still on its way when the fence compares, so its number is given to
somebody else, and the second of the two to land fails for good with NUMBER_REUSED: more was accepted than was for
sale, P4. P1, P2 and P6 hold in every row: the database alone sees to that.

*books*: P3 and P5 break where a server loses what no other one has; P12 says that the audit tells of each such
request that a number tells of. After *the database goes back*, a top-up that it forgot is still for sale in Redis,
and one buyer too many is accepted (P4). *Redis behind*: it may forget a grant that is marked as given, the fence
compares numbers and not grants, and nobody gives it again (P10); the audit tells (P12).

What the rows rely on, beyond the steps in the architecture (each is a mutation below):

- An attempt takes its epoch first, judges then whether anything is on its way, begins only in place of the very keys
  that it judged (same epoch, still building or not, or still none), and takes its snapshot only while the sale's
  epoch is its own.
- P5 freezes an open sale whose epoch in Redis is not the database's, and rebuilds it. A rebuild that is overtaken
  between its snapshot and its last step opens such a sale.
- A request that only the MQ DLQ has is undecided (U): a rebuild waits for it.
- A giver reads the grants of the sale's epoch, together with that epoch.
- P is counted grant by grant: the grants of the epoch whose id was not in Redis. As a difference of two sums it hides
  units in Redis that nobody granted: R is as much more as P is less. And Redis has each grant that was marked before
  Redis was counted.
- Orders above the count are added cancelled or not, failures above it are taken away reclaimed or not.
- Closing a gap takes its number, so that a late message finds a conflict. Its unit is W only in the sale's epoch:
  a rebuild has given the unit of an older gap to Redis already.
";

const MUTATIONS: &str = ".

## Mutations

One mechanism left out or done wrongly, with its loss window ([register](register.md)). Each must break the laws
named, in so many steps of a shortest counterexample; a mutation that stops failing fails the test. *Without
P5*: no ledger counts and nobody reconciles. *With P5*: compensation at any moment; \"heals\" means that the
search visited everything and every law held. The steps are those to the last law of the first column that breaks,
faults in bold. The two that acknowledge what is not recorded (60, 61) never end with P5: the audit finds
undecided what was acknowledged as decided (a step that the table forbids, P7) and lands it in vain.

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
