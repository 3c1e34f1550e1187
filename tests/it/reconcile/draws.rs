//! The draw of a line: anybody recomputes it, with our program or another one, and what was changed is found.

use crate::support::buyers::lines::ranks;
use crate::support::processes::programs::scratch;
use crate::support::world::{Answer, World, eventually, run};
use seckill::domain::ids::SaleId;
use seckill::domain::line::LinePlan;
use seckill::p5_reconcile::Window;
use seckill::roles::Role::{Api, Reconcile};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn beacon(line: &mut LinePlan) {
    line.needs_beacon = true;
}

/// The public files of a draw.
fn files(name: &str, draw: &Answer, list: &Answer) -> (PathBuf, PathBuf) {
    let folder = scratch("draws");
    let paths = (folder.join(format!("{name}.txt")), folder.join(format!("{name}.json")));
    std::fs::write(&paths.0, &list.body).unwrap();
    std::fs::write(&paths.1, &draw.body).unwrap();
    paths
}

/// The other program.
fn python(list: &Path, draw: &Path, entry: &str) -> Output {
    let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/verify-draw.py");
    Command::new("python3").arg(program).args([list, draw]).arg(entry).output().expect("python3 is installed")
}

async fn entered(world: &World, sale: &SaleId, count: u32) -> Vec<String> {
    let mut ids = Vec::new();
    for no in 0..count {
        ids.push(world.entered(sale, &format!("buyer-{no}")).await);
    }
    ids
}

#[test]
fn a_draw_is_recomputed_by_two_programs_and_a_changed_file_is_found() {
    run(async {
        let world = World::with(&[Api, Reconcile], &["p5_reconcile.interval_ms=100"]).await;
        let sale = world.raffle("drawn", |_, _| ()).await;
        let open = world.draw_of(&sale).await;
        let ids = entered(&world, &sale, 12).await;
        for hidden in ["seed", "digest", "entries", "sealed_at"] {
            assert_eq!(open.json[hidden], Value::Null, "{hidden}");
        }
        let early = world.list_of(&sale).await;
        assert_eq!((early.status, early.code()), (425, "LINE_NOT_SEALED".to_owned()), "{early:?}");
        assert!(!world.cli(&["line", "show", "drawn"]).exits(0).out.contains("buyer-"));
        world.line_is_over(&sale).await;
        let draw = world.draw_once(&sale, "DRAWN").await;
        assert_eq!(draw.text("commitment"), open.text("commitment"), "the one of before");
        let list = world.list_of(&sale).await;
        assert_eq!((list.status, list.header("content-type")), (200, "text/plain; charset=utf-8"));
        assert!(list.header("cache-control").starts_with("public") && !list.body.contains("buyer"), "{list:?}");
        assert_eq!(list.body.lines().count(), 12);
        let drawn = ranks(&draw, &list);
        let (entries, document) = files("drawn", &draw, &list);
        let (list_path, draw_path) = (entries.to_str().unwrap(), document.to_str().unwrap());
        let verify = ["line", "verify", list_path, "--draw", draw_path, "--first", "12", "--json", "--entry"];
        for (no, id) in ids.iter().enumerate() {
            let rank = drawn.of(id.parse().unwrap()).unwrap();
            let mine = world.entry_of(&sale, &format!("buyer-{no}")).await;
            assert_eq!((&mine.json["rank"], &mine.json["before"]), (&rank.into(), &(rank - 1).into()), "{mine:?}");
        }
        let ours = world.cli(&[&verify[..], &[ids[3].as_str()]].concat()).exits(0).json();
        let first: Vec<String> = drawn.first(12).iter().map(u64::to_string).collect();
        assert_eq!(ours["first"], Value::from(first.clone()));
        let last = first.last().unwrap();
        let theirs = python(&entries, &document, last);
        let expected: String = (1..=10).zip(&first).map(|(rank, id)| format!("{rank} {id}\n")).collect();
        assert_eq!(String::from_utf8_lossy(&theirs.stdout), format!("{expected}12 {last}\n"), "{theirs:?}");

        // Each of these is found by both.
        let other_id = list.body.replacen(&ids[0], &(ids[0].parse::<u64>().unwrap() + 1).to_string(), 1);
        let less: String = list.body.lines().skip(1).map(|line| format!("{line}\n")).collect();
        let seed = draw.body.replacen(&draw.text("seed"), &"0".repeat(64), 1);
        let changed = [(other_id, draw.body.clone()), (less, draw.body.clone()), (list.body.clone(), seed)];
        for (no, (list_body, draw_body)) in changed.into_iter().enumerate() {
            let (list, draw) = (Answer { body: list_body, ..list.clone() }, Answer { body: draw_body, ..draw.clone() });
            let (list, draw) = files(&format!("changed-{no}"), &draw, &list);
            world.cli(&["line", "verify", list.to_str().unwrap(), "--draw", draw.to_str().unwrap()]).exits(2);
            assert_eq!(python(&list, &draw, "").status.code(), Some(2), "{no}");
        }
        world.sale_control().warm(&sale).await.unwrap();
        assert!(world.audit(&sale, Window::Now).await.consistent());
        world.finish().await;
    });
}

#[test]
fn a_draw_that_waits_for_a_text_from_outside_is_drawn_with_it_once() {
    run(async {
        let world = World::with(&[Api], &[]).await;
        let sale = world.raffle("beacon", |_, line| beacon(line)).await;
        let own = world.raffle("own", |_, _| ()).await;
        // Two orders of this number do not agree by chance.
        entered(&world, &sale, 10).await;
        let draw_with = ["line", "draw", "beacon", "--beacon"];
        let early = world.cli(&[&draw_with[..], &["lotto 1"]].concat()).exits(1);
        assert!(early.err.contains("is OPEN; it is drawn once its list is SEALED"), "{early:?}");
        for line in [&sale, &own] {
            world.line_is_over(line).await;
        }
        world.keep_lines().await;
        world.keep_lines().await;
        let sealed = world.draw_once(&sale, "SEALED").await;
        assert!(sealed.json["seed"].is_string() && sealed.json["beacon"].is_null(), "{sealed:?}");
        let list = world.list_of(&sale).await;
        let mine = world.entry_of(&sale, "buyer-0").await;
        assert_eq!((mine.status, &mine.json["rank"]), (200, &Value::Null), "not drawn");
        let (entries, document) = files("sealed", &sealed, &list);
        let verify = ["line", "verify", entries.to_str().unwrap(), "--draw", document.to_str().unwrap()];
        assert!(world.cli(&verify).exits(0).out.contains("ranks come with the draw"));
        for (text, code) in
            [("", 64), (" ", 64), (&"b".repeat(201)[..], 64), ("lotto 灯塔", 0), ("lotto 灯塔", 0), ("other", 1)]
        {
            world.cli(&[&draw_with[..], &[text]].concat()).exits(code);
        }
        let drawn = world.draw_once(&sale, "DRAWN").await;
        assert_eq!(drawn.text("beacon"), "lotto 灯塔");
        let (entries, document) = files("beacon", &drawn, &list);
        let first = ranks(&drawn, &list).first(10);
        assert_ne!(first, ranks(&sealed, &list).first(10), "not the ranks of the seed alone");
        let expected: String = (1..=10).zip(&first).map(|(rank, id)| format!("{rank} {id}\n")).collect();
        assert_eq!(String::from_utf8_lossy(&python(&entries, &document, "").stdout), expected);
        let mine = world.entry_of(&sale, "buyer-0").await;
        let id = mine.text("entry_id").parse().unwrap();
        assert_eq!(mine.json["rank"].as_u64(), ranks(&drawn, &list).of(id).map(u64::from));
        let own_one = world.cli(&["line", "draw", "own", "--beacon", "b"]).exits(1);
        assert!(own_one.err.contains("it is drawn by itself"), "{own_one:?}");
        assert_eq!(world.rows("operator_acts", "action = 'line.draw' AND target_id = 'beacon'").await, 1);
        world.finish().await;
    });
}

#[test]
fn a_list_that_was_changed_behind_its_seal_is_not_shown() {
    run(async {
        let world = World::with(&[Api], &[]).await;
        let sale = world.raffle("changed", |_, _| ()).await;
        entered(&world, &sale, 3).await;
        world.line_is_over(&sale).await;
        world.keep_lines().await;
        world.draw_once(&sale, "DRAWN").await;
        world.sql("UPDATE line_entries SET entry_id = entry_id + 1 WHERE user_id = 'buyer-1'").await;
        for answer in [world.list_of(&sale).await, world.entry_of(&sale, "buyer-0").await] {
            assert_eq!((answer.status, answer.code()), (500, "INTERNAL".to_owned()), "{answer:?}");
        }
        world.sql("UPDATE line_entries SET entry_id = entry_id - 1 WHERE user_id = 'buyer-1'").await;
        eventually("the sealed one", async || world.list_of(&sale).await.status == 200).await;
        assert_eq!(world.entry_of(&sale, "buyer-0").await.status, 200);
        world.finish().await;
    });
}
