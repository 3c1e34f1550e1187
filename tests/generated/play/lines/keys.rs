//! What Redis has of the sale: lost, brought back with an older door, fenced, rebuilt.

use super::LinesStage;
use super::leaders::Hand;
use crate::lines::state::{LineMoment, Sells};
use seckill::p5_reconcile::single_steps::{self, SharedWatch};

impl LinesStage {
    /// The next step of the boot fence, or of a rebuild.
    pub(super) async fn keeps_up(&mut self, sells: Sells) -> Result<(), String> {
        match sells {
            Sells::Open => Ok(()),
            Sells::Restarted => {
                let fence = self.fence.clone();
                self.fencing.begin(async move { fence.pass(0).await.map_err(|error| error.to_string()) });
                self.fencing.to("fence: compared").await
            }
            Sells::Compared(_) => self.fencing.ends().await,
            Sells::Lost => {
                let (context, sale) = (self.context.clone(), self.stored().await);
                let backlog_max = self.world.settings.p1_entry.backlog_max;
                self.rebuild.begin(async move {
                    let watch = SharedWatch::default();
                    match single_steps::attempt_rebuild(&context, &sale, backlog_max, &watch).await {
                        Ok(true) => Ok(()),
                        Ok(false) => Err("the rebuild waits".to_owned()),
                        Err(error) => Err(error.to_string()),
                    }
                });
                self.rebuild.to("rebuild: numbered").await
            }
            Sells::Numbered(_) => self.rebuild.to("rebuild: snapped").await,
            Sells::Loaded => self.rebuild.to("rebuild: terms read").await,
            Sells::Read(_) => self.rebuild.ends().await,
        }
    }

    /// Redis loses all that it has of the sale.
    pub(super) async fn forgets(&mut self, accepted_too: bool) {
        let of_sale = format!(":{}", self.sale);
        for key in self.redis.keys().await.into_iter().filter(|key| key.ends_with(&of_sale)) {
            self.redis.call(&["DEL", &key]).await;
        }
        self.rebuild = Hand::default();
        self.fencing = Hand::default();
        if accepted_too {
            self.on_the_way = Default::default();
        }
    }

    /// Redis restarts with the door of before.
    pub(super) async fn forgets_door(&mut self) {
        let [door, at] = self.door_before.take().expect("a door of before");
        let meta = self.meta();
        self.redis.call(&["HSET", &meta, "door", &door, "terms_at", &at]).await;
        self.redis.call(&["SCRIPT", "FLUSH"]).await;
    }

    /// Keeps the door that a crash of Redis would bring back, and forgets it when something else was written.
    pub(super) async fn notes_door(&mut self, (moment, next): (&LineMoment, &LineMoment)) {
        match (moment.keys.before, next.keys.before) {
            (None, Some(_)) => {
                let (key, fields) = (self.meta(), ["door", "terms_at"]);
                let meta = self.redis.hash(&key).await;
                self.door_before = Some(fields.map(|field| meta.get(field).cloned().unwrap_or_default()));
            }
            (Some(_), None) if next.keys.sells != Sells::Restarted => self.door_before = None,
            _ => {}
        }
    }
}
