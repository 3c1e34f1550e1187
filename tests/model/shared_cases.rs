//! The table that the model shares with P5's audit and with the checker of the chaos runs: `tests/cases/books.txt`. Of its rows those
//! that the model has words for: what the audit finds wrong must be wrong in the model, and nothing else.

use crate::books::{Grant, Refusal};
use crate::setup::Setup;
use crate::sheet;
use crate::state::{Answered, FAILED, Meta, ORDER, SENT, Sale, World};

const TABLE: &str = include_str!("../cases/books.txt");

/// A state of the model, made by the steps of a row.
struct NamedWorld {
    world: World,
    /// Names of the requests, in their places; and of the grants.
    requests: Vec<String>,
    grants: Vec<String>,
}

impl NamedWorld {
    fn step(&mut self, step: &str) {
        let words: Vec<&str> = step.split_whitespace().collect();
        let number = |at: usize| words[at].parse::<i8>().unwrap();
        if words[0] == "accept" {
            assert_eq!(words[2], "1", "{step}: a request of the model has one unit");
            self.requests.push(words[1].to_owned());
            return self.accept();
        }
        let place = |names: &[String]| names.iter().position(|name| words.get(1) == Some(&name.as_str()));
        let (request, grant) = (place(&self.requests).unwrap_or(0), place(&self.grants).unwrap_or(0));
        let world = &mut self.world;
        let of = &mut world.requests[request];
        match words[0] {
            "order" => (of.outcome, of.orders, world.db_stock) = (ORDER, 1, world.db_stock - 1),
            "fail" => {
                of.outcome = FAILED;
                of.decided.refusal = if words[2] == "SOLD_OUT" { Refusal::NoUnit } else { Refusal::TookUnit };
            }
            "park" => of.mq_dlq = true,
            // The model's audit asks the database, not the mark.
            "unmark" => {}
            "forget" => of.kept.ledger = 0,
            "trim" => (of.kept.ledger, of.kept.trimmed) = (0, of.epoch),
            "undo" => (of.outcome, of.orders, world.db_stock) = (0, 0, world.db_stock + 1),
            "vanish" => {
                of.kept.ledger = 0;
                (world.meta.number, world.meta.stock) = (world.meta.number - 1, world.meta.stock + 1);
            }
            "grant" => {
                self.grants.push(words[1].to_owned());
                (world.books.rows.granted, world.db_stock) =
                    (world.books.rows.granted + number(2), world.db_stock + number(2));
                self.add_grant(number(2));
            }
            "give" => {
                let units = world.books.rows.grants[grant].units;
                world.books.rows.grants[grant].marked = true;
                world.meta.ids |= 1 << grant;
                (world.meta.granted, world.meta.stock) = (world.meta.granted + units, world.meta.stock + units);
            }
            "found" => {
                (world.meta.granted, world.meta.stock) = (world.meta.granted + number(2), world.meta.stock + number(2));
            }
            "stock" => world.db_stock += number(1),
            "bucket" => world.meta.stock += number(1),
            "number" => world.meta.number = number(1).unsigned_abs(),
            "cancel" => {
                (of.decided.cancelled, world.db_stock) = (true, world.db_stock + 1);
                self.add_grant(1);
            }
            "rebuild" => self.rebuild(),
            other => panic!("the model does not know the step {other}: its row ends with -"),
        }
    }

    fn accept(&mut self) {
        let meta = &mut self.world.meta;
        (meta.number, meta.stock) = (meta.number + 1, meta.stock - 1);
        let of = &mut self.world.requests[self.requests.len() - 1];
        (of.answered, of.epoch, of.number, of.journey) = (Answered::Accepted, meta.epoch, meta.number, Some(SENT));
        of.kept.ledger = meta.epoch;
    }

    fn add_grant(&mut self, units: i8) {
        let (at, epoch) = (usize::from(self.world.books.made), self.world.db_epoch);
        self.world.books.rows.grants[at] = Grant { units, epoch, ..Grant::default() };
        self.world.books.made += 1;
    }

    fn rebuild(&mut self) {
        let world = &mut self.world;
        let units = world.db_stock - sheet::held_back(world);
        world.db_epoch += 1;
        world.meta = Meta { epoch: world.db_epoch, stock: units, granted: units, ..Meta::default() };
        (world.books.rows.base, world.books.rows.grants) = (units, Default::default());
        for request in world.requests.iter_mut().filter(|request| request.outcome > 0) {
            request.kept.ledger = request.epoch;
        }
        assert_eq!(world.meta.sale, Sale::Open);
    }
}

#[test]
fn what_the_audit_finds_is_wrong_in_the_model_too() {
    let setup = Setup::new(3, 10, 0, &[]);
    let mut count = 0;
    for line in TABLE.lines().filter(|line| !line.starts_with('#') && line.ends_with("model")) {
        let columns: Vec<&str> = line.split('|').map(str::trim).collect();
        let [name, steps, audit, _checker, _model] = columns[..] else { panic!("{line}: five columns") };
        let mut named = NamedWorld { world: setup.start(), requests: Vec::new(), grants: Vec::new() };
        steps.split(';').map(str::trim).filter(|step| !step.is_empty()).for_each(|step| named.step(step));
        assert_eq!(sheet::is_consistent(&setup, &named.world), audit == "-", "{name}: the audit finds {audit}");
        count += 1;
    }
    assert!(count >= 18, "only {count} rows");
}
