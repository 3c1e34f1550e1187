//! The table that the checker shares with P5's audit and with the model: `tests/cases/books.txt`. The dumps of a run are made of the
//! same steps, and judged without a line of the product.

use super::super::check;
use super::super::read::{Flow, Grant, Units};
use super::sample_run::SampleRun;
use std::collections::{BTreeSet, HashMap};

/// A run with one sale, and the requests of the table by their names.
struct NamedRun {
    run: SampleRun,
    rids: HashMap<String, String>,
}

impl NamedRun {
    fn step(&mut self, step: &str) {
        let words: Vec<&str> = step.split_whitespace().collect();
        let word = |at: usize| *words.get(at).unwrap_or_else(|| panic!("{step}: a word is missing"));
        let number = |at: usize| word(at).parse::<i64>().unwrap();
        let rid = || self.rids[word(1)].clone();
        let run = &mut self.run;
        match word(0) {
            "accept" => {
                let rid = run.accepted("s", word(1), number(2));
                self.rids.insert(word(1).to_owned(), rid);
            }
            "order" => run.persisted(&rid()),
            "fail" => run.fails(&rid(), word(2)),
            "park" => run.parks(&rid()),
            "send" => run.is_in("orders", &rid()),
            "unmark" => {
                let record = run.record_of(&rid());
                (record.state, record.reason) = ("Q".into(), "-".into());
            }
            "forget" => run.loses_record(&rid()),
            "trim" => run.trims(&rid()),
            "undo" => run.goes_back(&rid()),
            "untie" => run.input.outcomes.retain(|outcome| outcome.request_id != rid()),
            "vanish" => {
                let units = run.record_of(&rid()).quantity;
                run.loses_record(&rid());
                run.adds_to("number", -1);
                run.fills_bucket(units);
            }
            "grant" => run.grants(word(1), number(2)),
            "give" => run.gives(word(1)),
            "found" => run.has_given(word(1), number(2)),
            "stock" => run.sale_of("s").stock += number(1),
            "bucket" => run.fills_bucket(number(1)),
            "journal" => run.writes_journal("correction", number(1)),
            "number" => drop(run.meta_of("s").fields.insert("number".into(), word(1).into())),
            "cancel" => run.cancels(&rid()),
            "freeze" => drop(run.meta_of("s").fields.insert("state".into(), "frozen".into())),
            "rebuild" => {
                let held: i64 = run.input.failed.iter().map(|row| row.quantity).sum();
                let left = run.sale_of("s").stock - held;
                run.rebuild("s", left);
            }
            other => panic!("the checker does not know the step {other}"),
        }
    }
}

impl SampleRun {
    fn loses_record(&mut self, rid: &str) {
        self.input.ledger.retain(|record| record.rid != rid);
    }

    fn adds_to(&mut self, field: &str, more: i64) {
        let fields = &mut self.meta_of("s").fields;
        let before = fields.get(field).map_or(0, |text| text.parse::<i64>().unwrap());
        fields.insert(field.into(), (before + more).to_string());
    }

    fn fills_bucket(&mut self, units: i64) {
        let stock = self.input.stock.first_mut().unwrap();
        stock.value = (stock.value.parse::<i64>().unwrap() + units).to_string();
    }

    fn writes_journal(&mut self, kind: &str, delta: i64) {
        self.input.flow.push(Flow { sale_id: "s".into(), delta, kind: kind.into() });
    }

    fn trims(&mut self, rid: &str) {
        let record = self.record_of(rid).clone();
        self.adds_to("trimmed_count", 1);
        self.adds_to(if record.state == "F" { "trimmed_failed" } else { "trimmed_ordered" }, record.quantity);
        self.loses_record(rid);
    }

    fn goes_back(&mut self, rid: &str) {
        self.input.outcomes.retain(|outcome| outcome.request_id != rid);
        self.input.failed.retain(|row| row.request_id != rid);
        let at = self.input.orders.iter().position(|order| order.request_id == rid);
        if let Some(at) = at {
            let units = self.input.orders.remove(at).quantity;
            self.sale_of("s").stock += units;
            self.writes_journal("correction", units);
        }
    }

    fn grants(&mut self, name: &str, units: i64) {
        let sale = self.sale_of("s");
        (sale.granted, sale.stock) = (sale.granted + units, sale.stock + units);
        self.writes_journal("grant", units);
        self.notes_grant(name, units);
    }

    fn notes_grant(&mut self, name: &str, quantity: i64) {
        self.input.grants.push(Grant {
            sale_id: "s".into(),
            grant_id: name.into(),
            kind: "grant".into(),
            quantity,
            epoch: 1,
            applied_at: None,
        });
    }

    fn gives(&mut self, name: &str) {
        let grant = self.input.grants.iter_mut().find(|grant| grant.grant_id == name).unwrap();
        grant.applied_at = Some("2025-11-11".into());
        let units = grant.quantity;
        self.has_given(name, units);
    }

    fn has_given(&mut self, name: &str, units: i64) {
        let given = Units { sale: "s".into(), shard: 0, id: name.into(), units: units.to_string() };
        self.input.redis_grants.push(given);
        self.fills_bucket(units);
    }

    fn cancels(&mut self, rid: &str) {
        let order = self.input.orders.iter_mut().find(|order| order.request_id == rid).unwrap();
        (order.state, order.cancelled_at) = (Some("CANCELLED".into()), Some("2025-11-11".into()));
        let units = order.quantity;
        self.sale_of("s").stock += units;
        self.writes_journal("cancel", units);
        self.notes_grant(&format!("cancel-{rid}"), units);
    }
}

#[test]
fn the_checker_says_what_the_shared_table_says() {
    let table = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/cases/books.txt");
    let (mut count, mut complaints) = (0, Vec::new());
    for line in std::fs::read_to_string(table).unwrap().lines() {
        if line.starts_with('#') || line.is_empty() {
            continue;
        }
        let columns: Vec<&str> = line.split('|').map(str::trim).collect();
        let [name, steps, _audit, expected, _model] = columns[..] else { panic!("{line}: five columns") };
        let mut named = NamedRun { run: SampleRun::default(), rids: HashMap::new() };
        named.run.sale("s", 10, None);
        steps.split(';').map(str::trim).filter(|step| !step.is_empty()).for_each(|step| named.step(step));
        let dir = named.run.write();
        let verdict = check(&dir);
        std::fs::remove_dir_all(dir).unwrap();
        let expected: BTreeSet<&str> = expected.split_whitespace().filter(|rule| *rule != "-").collect();
        if verdict.rules().into_iter().collect::<BTreeSet<_>>() != expected {
            complaints.push(format!("{name}: expected {expected:?}, found {:#?}", verdict.violations));
        }
        count += 1;
    }
    assert!(complaints.is_empty(), "{}", complaints.join("\n"));
    assert!(count >= 25, "only {count} rows");
}
