//! Faults inside RabbitMQ, in its own language.

use super::{Destroyed, Field, Outcome};
use crate::deployment::PREFIX;
use crate::time::time_passes;
use seckill::dev::ServerKind;
use std::time::Instant;

/// Every connection, by an operator.
pub(super) const CLOSE_ALL: &str =
    "[rabbit_networking:close_connection(P, \"chaos\") || P <- rabbit_networking:connections()]";
const LITTLE_MEMORY: &str = "vm_memory_monitor:set_vm_memory_high_watermark({absolute, 1000000})";
const ENOUGH_MEMORY: &str = "vm_memory_monitor:set_vm_memory_high_watermark(0.4)";
const GHOSTS: &str = "length([rabbit_amqqueue:delete(Q, false, false, <<\"chaos\">>) || Q <- rabbit_amqqueue:list(), \
    amqqueue:is_quorum(Q), whereis(element(1, amqqueue:get_pid(Q))) == undefined])";
const DEAD_LETTERING: &str = "whereis(rabbit_fifo_dlx_sup) =/= undefined";
/// No queue is deleted until the node has been up for this time, see [`Field::delete`].
const UP_MS: u64 = 3_000;
/// Nothing was asked.
const BEING_STARTED: &str = "being started";
const RETRY_DELAYS_MS: [u32; 4] = [200, 400, 800, 1_000];

fn name(kind: &str, name: &str) -> String {
    format!("rabbit_misc:r(<<\"/\">>, {kind}, <<\"{PREFIX}.{name}\">>)")
}

/// The order queue off its exchange: unroutable from here on (window 36).
pub(super) fn unbind_orders() -> String {
    let (exchange, queue) = (name("exchange", "orders"), name("queue", "orders.0"));
    format!("rabbit_binding:remove({{binding, {exchange}, <<\"0\">>, {queue}, []}}, <<\"chaos\">>)")
}

fn delete(queue: &str) -> String {
    format!("{{ok, Q}} = rabbit_amqqueue:lookup({queue}), rabbit_amqqueue:delete(Q, false, false, <<\"chaos\">>)")
}

/// The order queue with everything in it (windows 58, 59).
pub fn delete_orders() -> String {
    delete(&name("queue", "orders.0"))
}

/// One of the retry queues with everything in it.
pub(super) fn delete_retry(dice: u32) -> String {
    delete(&name("queue", &format!("retry.{}", RETRY_DELAYS_MS[dice as usize % RETRY_DELAYS_MS.len()])))
}

fn purge(queue: &str) -> String {
    format!("{{ok, Q}} = rabbit_amqqueue:lookup({}), rabbit_amqqueue:purge(Q)", name("queue", queue))
}

/// Everything in the order queue (window 58).
pub fn purge_orders() -> String {
    purge("orders.0")
}

/// Everything in the MQ DLQ.
pub fn purge_dlq() -> String {
    purge("dlq")
}

impl Field {
    /// One expression; what it throws is an error.
    pub(super) async fn broker(&self, program: &str) -> Result<String, String> {
        // A node that is asked too early does not get up.
        if self.deployment.server(ServerKind::Rabbitmq).try_lock().is_err() {
            return Err(BEING_STARTED.to_owned());
        }
        let answer = self.deployment.broker(program).await?;
        if answer.starts_with("{ok") { Ok(answer) } else { Err(answer) }
    }

    /// Publishers are not read from for a while (window 41).
    pub(super) async fn memory_alarm(&self, length_ms: u64) -> Outcome {
        let done = self.broker(LITTLE_MEMORY).await;
        time_passes(length_ms).await;
        self.no_alarm().await;
        done.into()
    }

    /// What an operator has to do on RabbitMQ 3.10 when a node was killed within minutes of a quorum queue's deletion and
    /// new declaration: it comes back with a queue that has no process (its log: "could not be restarted"), refuses every
    /// message and every consumer, and can be declared again only after it was deleted. How many such queues there were.
    pub(super) async fn remove_ghosts(&self) -> u64 {
        let began_ms = self.elapsed_ms();
        let answer = self.broker(GHOSTS).await.unwrap_or_default();
        let digits: String = answer.chars().filter(char::is_ascii_digit).collect();
        let count = digits.parse().unwrap_or(0);
        if count > 0 {
            self.lost_messages(began_ms);
        }
        count
    }

    /// An expression that destroys messages. One that is not answered may have done so.
    pub(super) async fn destroy(&self, program: &str, asked_ms: u64) -> Result<String, String> {
        let done = self.broker(program).await;
        if done.as_ref().err().is_none_or(|error| error != BEING_STARTED) {
            self.lost_messages(asked_ms);
        }
        done
    }

    fn lost_messages(&self, began_ms: u64) {
        let span = Destroyed { began_ms, healed_ms: self.elapsed_ms() };
        self.destroyed.lock().expect("not poisoned").push(span);
    }

    pub(super) async fn no_alarm(&self) {
        // A killed node comes back with its own setting.
        self.undo(ServerKind::Rabbitmq, || self.broker(ENOUGH_MEMORY)).await;
    }

    /// An expression that deletes a queue, when the node is up for a while. A quorum queue of RabbitMQ 3.10 that goes in the second in
    /// which its node starts ends the supervisor of dead-lettering (`rabbit_fifo_dlx_sup`, as its worker meets no queue), which stays
    /// away until the next start: no queue that is declared from then on works. That is no fault of the product, and none that it can
    /// survive.
    pub(super) async fn delete(&self, program: &str) -> Result<String, String> {
        let asked_ms = self.elapsed_ms();
        // Held while it starts.
        drop(self.deployment.server(ServerKind::Rabbitmq).lock().await);
        let since = self.broker_since.lock().expect("not poisoned").elapsed();
        time_passes(UP_MS.saturating_sub(u64::try_from(since.as_millis()).expect("a short run"))).await;
        self.destroy(program, asked_ms).await
    }

    /// The broker has just been started.
    pub(super) fn broker_started(&self) {
        *self.broker_since.lock().expect("not poisoned") = Instant::now();
    }

    /// What an operator has to do when dead-lettering is gone all the same: start the node again.
    pub(super) async fn dead_letters(&self) {
        if self.broker(DEAD_LETTERING).await.is_ok_and(|answer| answer.contains("false")) {
            eprintln!("chaos: the broker has no dead-lettering any more and is started again");
            self.deployment.kill_and_restart(ServerKind::Rabbitmq).await;
        }
    }
}
