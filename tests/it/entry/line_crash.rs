//! Api processes that die around the commit of an entry: what was answered is there, and who has no answer finds out by entering again.

use crate::support::world::{Answer, World, run};
use seckill::roles::Role::Api;
use serde_json::json;

#[test]
fn an_entry_that_was_answered_outlives_its_process_and_one_that_was_not_is_there_or_not() {
    run(async {
        let world = World::with(&[Api], &[]).await;
        let sale = world.raffle("dies", |_, _| ()).await;
        let by = |url: String, buyer: &str| {
            let request = world.http.post(format!("{url}/v1/sales/{sale}/entries"));
            request.bearer_auth(world.access(buyer)).json(&json!({ "quantity": 1 }))
        };
        let api = world.start_armed("", "api").await;
        let answered = Answer::of(by(api.api_url(), "ann")).await;
        api.kill();
        assert_eq!(answered.status, 201, "{answered:?}");
        assert_eq!(world.entry_of(&sale, "ann").await.text("entry_id"), answered.text("entry_id"));

        for (point, buyer, there) in [("F80", "bob", 0), ("F81", "eve", 1)] {
            let api = world.start_armed(&format!("{point}=return"), "api").await;
            assert!(by(api.api_url(), buyer).send().await.is_err(), "no answer");
            api.dies_at(point).await;
            assert_eq!(world.rows("line_entries", &format!("user_id = '{buyer}'")).await, there, "{point}");
            let again = world.enter_line(&sale, buyer, 1).await;
            assert_eq!(again.status, if there == 1 { 409 } else { 201 }, "{point}: {again:?}");
            let id = again.text("entry_id");
            assert_eq!(world.entry_of(&sale, buyer).await.text("entry_id"), id, "{point}");
        }
        assert_eq!(world.rows("line_entries", "listed = 1").await, 3);
        world.finish().await;
    });
}
