//! The table that the audit shares with the checker of the chaos runs and with the model: `tests/cases/books.txt`.

use super::scene::AuditScene;
use crate::domain::ids::RequestId;
use crate::domain::ledger::LedgerState;
use crate::domain::outcome::FailReason;
use crate::p5_reconcile::audit::window::Window;
use std::collections::{BTreeSet, HashMap};

const TABLE: &str = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/cases/books.txt"));

/// A scene, and the requests of the table by their names.
struct NamedScene {
    scene: AuditScene,
    ids: HashMap<String, RequestId>,
}

impl NamedScene {
    fn step(&mut self, step: &str) {
        let words: Vec<&str> = step.split_whitespace().collect();
        let word = |at: usize| *words.get(at).unwrap_or_else(|| panic!("{step}: a word is missing"));
        let number = |at: usize| word(at).parse::<i64>().unwrap();
        let id = || self.ids[word(1)];
        let scene = &mut self.scene;
        match word(0) {
            "accept" => {
                let id = scene.accept(word(2).parse().unwrap());
                self.ids.insert(word(1).to_owned(), id);
            }
            "order" => scene.order(id()),
            "fail" => scene.fail(id(), FailReason::from_code(word(2)).unwrap()),
            "park" => scene.park(id()),
            // The audit does not read the queues: they say where a leak may be, and decide nothing.
            "send" => {}
            "unmark" => scene.record(id()).state = LedgerState::Queued,
            "forget" => scene.redis_forgets(id()),
            "trim" => scene.trim(id()),
            "undo" => scene.database_forgets(id()),
            "untie" => {
                let units = scene.database.units_of(id());
                let id = id();
                scene.database.decided.retain(|request| request.id != id);
                scene.database.orders.unnumbered += units;
                scene.database.orders.without_outcome += units;
            }
            "vanish" => vanish(scene, id()),
            "grant" => scene.grant(word(1), number(2)),
            "give" => scene.give(word(1), true),
            "found" => {
                scene.shards[0].given.insert(word(1).to_owned(), number(2));
                scene.shards[0].stock += number(2);
            }
            "stock" => scene.database.stock += number(1),
            "bucket" => scene.shards[0].stock += number(1),
            "journal" => scene.database.flow += number(1),
            "number" => {
                scene.shards[0].number = number(1).unsigned_abs();
                // Redis' counters are one key: where the number is back, so are the units.
                let ledger = scene.shards[0].ledger.iter();
                scene.shards[0].accepted = Some(ledger.map(|(_, record)| i64::from(record.quantity.get())).sum());
            }
            "cancel" => scene.cancel(id()),
            "freeze" => scene.freeze(),
            "rebuild" => scene.rebuild(),
            other => panic!("the audit does not know the step {other}"),
        }
    }
}

fn vanish(scene: &mut AuditScene, id: RequestId) {
    let units = i64::from(scene.record(id).quantity.get());
    scene.redis_forgets(id);
    let shard = &mut scene.shards[0];
    (shard.number, shard.stock) = (shard.number - 1, shard.stock + units);
    shard.accepted = shard.accepted.map(|sum| sum - units);
}

#[test]
fn the_audit_says_what_the_shared_table_says() {
    let (mut count, mut complaints) = (0, Vec::new());
    for line in TABLE.lines().filter(|line| !line.starts_with('#') && !line.is_empty()) {
        let columns: Vec<&str> = line.split('|').map(str::trim).collect();
        let [name, steps, expected, _checker, _model] = columns[..] else { panic!("{line}: five columns") };
        let mut named = NamedScene { scene: AuditScene::open(10), ids: HashMap::new() };
        named.scene.window = Window::Now;
        steps.split(';').map(str::trim).filter(|step| !step.is_empty()).for_each(|step| named.step(step));
        let (judged, _) = named.scene.judged().unwrap_or_else(|| panic!("{name}: not decided"));
        let audit = judged.audit;
        let found: BTreeSet<&str> = audit.findings.iter().map(|finding| finding.kind.code()).collect();
        let expected: BTreeSet<&str> = expected.split_whitespace().filter(|code| *code != "-").collect();
        if found != expected || audit.consistent() != expected.is_empty() {
            complaints.push(format!("{name}: expected {expected:?}, found {:#?}", audit.findings));
        }
        count += 1;
    }
    assert!(complaints.is_empty(), "{}", complaints.join("\n"));
    assert!(count >= 25, "only {count} rows");
}
