//! Imports: many sales and drops of one file are there as the file says, or none is and every mistake is named.

use crate::support::processes::programs::scratch;
use crate::support::world::{World, run};
use seckill::roles::Role::Api;
use serde_json::{Value, json};

fn sale(id: &str, more: &Value) -> Value {
    let mut sale = json!({
        "sale_id": id, "product_id": "p", "title": id, "stock": 5, "limit": 1, "price_cents": 100,
        "starts_at": "2026-01-01T10:00:00+08:00", "ends_at": "2099-01-01T12:00:00+08:00"
    });
    sale.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    sale
}

fn drop_of(sales: &[Value]) -> Value {
    json!({ "drop_id": "d", "title": "Drop", "limit": 2, "sales": sales })
}

fn file(name: &str, entries: &[Value]) -> String {
    let lines: Vec<String> = entries.iter().map(ToString::to_string).collect();
    text_file(name, &lines.join("\n"))
}

fn text_file(name: &str, text: &str) -> String {
    let path = scratch("imports").join(name);
    std::fs::write(&path, text).unwrap();
    path.to_str().unwrap().to_owned()
}

/// Two sales and a drop of two.
fn four() -> [Value; 3] {
    let releases = json!({ "releases": [{ "at": "2098-01-01T11:00:00+08:00", "units": 3 }] });
    let rest = json!({ "ends_at": "2098-01-01T12:00:00+08:00", "rollover_to": "l" });
    [sale("a", &json!({ "warm": true })), drop_of(&[sale("m", &rest), sale("l", &releases)]), sale("b", &json!({}))]
}

impl World {
    async fn sales_there(&self) -> i64 {
        self.rows("sales", "TRUE").await
    }
}

#[test]
fn a_file_is_created_as_a_whole_on_record_and_a_repeat_changes_nothing() {
    run(async {
        let world = World::with(&[Api], &[]).await;
        let path = file("four.ndjson", &four());
        let said = world.cli(&["sale", "import", "--file", &path]).exits(0);
        assert!(said.out.contains("created 4 sales; 0 exist as asked\nwarmed a\n"), "{said:?}");
        assert_eq!(world.rows("sales", "status = 'warmed'").await, 1, "the one that says so");
        let acts = "action = 'sale.create' AND outcome = 'ok' AND after_json LIKE '%\"sha256\"%'";
        assert_eq!(world.rows("operator_acts", acts).await, 4, "one with each sale");
        let list = text_file("four.json", &serde_json::to_string_pretty(&json!(four())).unwrap());
        let said = world.cli(&["sale", "import", "--file", &list, "--warm"]).exits(0);
        assert!(said.out.contains("created 0 sales; 4 exist as asked"), "{said:?}");
        assert_eq!((world.sales_there().await, world.rows("sales", "status = 'warmed'").await), (4, 4));
        assert_eq!(world.rows("operator_acts", acts).await, 4);
        // A sale that was given units is not as the file says any more; one that the file does not name is not asked about.
        world.cli(&["sale", "top-up", "b", "3"]).exits(0);
        world.cli(&["sale", "import", "--file", &file("b.ndjson", &four()[..2])]).exits(0);
        let shown = world.cli(&["drop", "show", "d", "--json"]).exits(0).json();
        assert_eq!(shown["sales"][0]["rollover_to"], "l");
        assert_eq!(shown["sales"][1]["releases"][0]["units"], 3);
        let more = [four().to_vec(), vec![sale("new", &json!({}))]].concat();
        let said = world.cli(&["sale", "import", "--file", &file("more.ndjson", &more)]).exits(1);
        assert!(said.err.contains("line 3: sale b: stock: is 8 in the database, and 5 in the file"), "{said:?}");
        assert_eq!(world.sales_there().await, 4, "not the new one either");
        world.finish().await;
    });
}

#[test]
fn every_mistake_of_a_file_is_named_and_nothing_is_created() {
    run(async {
        let world = World::with(&[], &[]).await;
        let bad = [
            sale("good", &json!({})),
            sale("a", &json!({ "stock": -1, "currency": "RMB" })),
            sale("b", &json!({ "price_cents": "free" })),
            drop_of(&[sale("m", &json!({ "limit": 0 })), sale("l", &json!({ "colour": 1 }))]),
            sale("good", &json!({})),
        ];
        let said = world.cli(&["sale", "import", "--file", &file("bad.ndjson", &bad)]).exits(64);
        for expected in [
            "line 2: stock: expected 0 to 1,000,000,000 units",
            "line 2: currency: expected the code of a currency",
            "line 3: price_cents: invalid type",
            "line 4: sale m: limit: expected a whole number from 1",
            "line 4: sale l: colour: unknown field",
            "line 5: sale_id: good is at line 1, too",
        ] {
            assert!(said.err.contains(expected), "{expected}: {said:?}");
        }
        assert_eq!(world.sales_there().await, 0);
        let missing = world.cli(&["sale", "import", "--file", "/nowhere/at-all"]).exits(64);
        assert!(missing.err.contains("cannot read /nowhere/at-all"), "{missing:?}");
        world.finish().await;
    });
}

#[test]
fn nothing_is_created_when_the_last_one_cannot_be() {
    run(async {
        let world = World::with(&[], &[]).await;
        world.cli(&["sale", "import", "--file", &file("first.ndjson", &[sale("taken", &json!({}))])]).exits(0);
        let differing = [
            sale("x", &json!({})),
            drop_of(&[sale("m", &json!({})), sale("taken", &json!({}))]),
            sale("taken", &json!({ "title": "Other", "price_cents": 7 })),
        ];
        let said = world.cli(&["sale", "import", "--file", &file("two.ndjson", &differing[..2])]).exits(1);
        assert!(
            said.err.contains("line 2: sale taken: drop_id: is null in the database, and d in the file"),
            "{said:?}"
        );
        let last = [differing[0].clone(), differing[2].clone()];
        let said = world.cli(&["sale", "import", "--file", &file("last.ndjson", &last)]).exits(1);
        for expected in [
            "line 2: sale taken: title: is taken in the database, and Other in the file",
            "line 2: sale taken: price_cents: is 100 in the database, and 7 in the file",
        ] {
            assert!(said.err.contains(expected), "{expected}: {said:?}");
        }
        assert_eq!((world.sales_there().await, world.rows("drops", "TRUE").await), (1, 0));
        world.finish().await;
    });
}

#[test]
fn an_import_that_dies_leaves_all_or_nothing_and_its_repeat_does_the_rest() {
    run(async {
        let world = World::with(&[], &[]).await;
        let path = file("dies.ndjson", &four());
        let import = ["sale", "import", "--file", &path, "--warm"];
        for (point, there) in [("F62", 0), ("F63", 4)] {
            let died = world.cli_with_faults(&format!("{point}=return"), &import);
            assert_eq!((died.code, world.sales_there().await), (None, there), "{point}: {died:?}");
            let acts = world.rows("operator_acts", "action = 'sale.create'").await;
            assert_eq!((acts, world.rows("sales", "status = 'warmed'").await), (there, 0), "{point}");
        }
        world.cli(&import).exits(0);
        assert_eq!((world.sales_there().await, world.rows("sales", "status = 'warmed'").await), (4, 4));
        assert_eq!(world.rows("stock_grants", "applied_at IS NOT NULL").await, 4);
        world.finish().await;
    });
}

#[test]
fn a_thousand_sales_come_with_one_file_although_two_import_it_at_once() {
    run(async {
        let world = World::with(&[], &[]).await;
        let many: Vec<Value> = (0..1_000).map(|n| sale(&format!("s{n}"), &json!({}))).collect();
        let path = file("many.ndjson", &many);
        let import = || world.cli(&["sale", "import", "--file", &path]);
        let (one, two) = std::thread::scope(|scope| {
            let other = scope.spawn(import);
            (import(), other.join().unwrap())
        });
        for said in [one, two] {
            let said = said.exits(0);
            assert!(said.out.contains("1000 exist as asked") || said.out.contains("created 1000 sales"), "{said:?}");
        }
        assert_eq!((world.sales_there().await, world.rows("stock_grants", "TRUE").await), (1_000, 1_000));
        world.finish().await;
    });
}
