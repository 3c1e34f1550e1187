//! The programs of `docs/passes/`, which show how a shop signs passes in three languages: what they sign is a good pass.

use crate::support::buyers::passes::{FACTS_AND_PASSES, PASS_SECRET, ShowingBuyer, needs};
use crate::support::world::{World, run};
use seckill::roles::Role;
use serde_json::json;
use std::path::Path;
use std::process::Command;

/// Interpreter and file.
const PROGRAMS: [(&str, &str); 3] = [("python3", "sign_pass.py"), ("node", "sign_pass.mjs"), ("php", "sign_pass.php")];

/// What a program prints.
fn signed(program: &str, file: &str, words: [&str; 4]) -> String {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/passes").join(file);
    let output = Command::new(program).arg(&file).args(words).output().expect("make deps-long installs it");
    assert!(output.status.success(), "{program}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("text").trim().to_owned()
}

#[test]
fn a_pass_that_a_shop_signs_in_three_languages_is_good() {
    run(async {
        let world = World::with(&Role::ALL, &FACTS_AND_PASSES).await;
        let needed = needs(&json!({ "tier": ["gold"], "pass": true }));
        let sale = world.sale_with("snippets", 10, |sale| sale.needs = needed).await;
        for (program, file) in PROGRAMS {
            for buyer in [format!("of-{program}"), format!("买家 {program}")] {
                let pass = |secret, tier| signed(program, file, [secret, &buyer, "snippets", tier]);
                let with = |pass| ShowingBuyer::new(&world, &buyer).with_pass(pass);
                assert_eq!(with(pass(PASS_SECRET, "silver")).buy(&sale).await.code(), "P1-Q1", "{program}");
                let forged = with(pass("another-secret-that-is-32-bytes-long", "gold")).buy(&sale).await;
                assert_eq!(forged.code(), "PASS_INVALID", "{program}");
                let answer = with(pass(PASS_SECRET, "gold")).buy(&sale).await;
                assert_eq!(answer.status, 202, "{program}: {answer:?}");
            }
        }
        assert_eq!(world.settled(&sale).await.counted.ordered, 6);
        world.finish().await;
    });
}
