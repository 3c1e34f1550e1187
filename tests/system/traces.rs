//! F5: one order is followed through processes that exchange nothing about it, by spans that an OpenTelemetry collector
//! puts into one trace; and a collector that is no use holds nothing up.

use crate::support::outside::collector::{Collector, Seen};
use crate::support::processes::killable::KillableProcess;
use crate::support::world::fault_injection::{REFUSING_TRIGGER, redis};
use crate::support::world::{World, eventually, run_waiting};
use seckill::dev::ports::free_port;
use seckill::domain::ids::SaleId;
use seckill::domain::trace::{MILLION, Trace};
use seckill::p5_reconcile::Window;
use std::collections::BTreeSet;

/// A world whose roles are processes of their own that trace every order.
struct Traced {
    world: World,
    sale: SaleId,
    roles: Vec<(&'static str, KillableProcess)>,
}

impl Traced {
    async fn start(roles: &[&'static str], collector: &Collector, set: &[&str]) -> Self {
        let mut world = World::with(&[], &[]).await;
        let sale = world.sale("traced", 1_000, None).await;
        let listen = format!("127.0.0.1:{}", free_port().unwrap());
        world.api = format!("http://{listen}");
        let own = [
            format!("http.listen={listen}"),
            format!("traces.otlp_endpoint={}", collector.endpoint),
            format!("traces.sample_per_million={MILLION}"),
            "p4_persist.attempts_max=3".to_owned(),
        ];
        let set: Vec<&str> = own.iter().map(String::as_str).chain(set.iter().copied()).collect();
        let roles = roles.iter().map(|role| (*role, world.process(role, "", &set))).collect();
        eventually("the api", async || world.http.get(format!("{}/v1/sales", world.api)).send().await.is_ok()).await;
        Self { world, sale, roles }
    }

    fn role(&self, name: &str) -> &KillableProcess {
        &self.roles.iter().find(|(role, _)| *role == name).expect("a role that runs").1
    }

    /// Stops everything in order; a collector that does not answer keeps no role.
    async fn finish(self) {
        for (role, mut mortal) in self.roles {
            assert_eq!(mortal.program.terminate().await.0, Some(0), "{role}: {}", mortal.program.stderr());
        }
        let audit = self.world.audit(&self.sale, Window::Now).await;
        assert!(audit.consistent(), "{audit:#?}");
        self.world.finish().await;
    }
}

/// The one span with this code.
fn with<'a>(spans: &'a [Seen], code: &str) -> &'a Seen {
    let found: Vec<&Seen> = spans.iter().filter(|span| span.code == code).collect();
    assert_eq!(found.len(), 1, "{code}: {spans:#?}");
    found[0]
}

/// Waits until the collector has all these codes for a request, in any order and as often as named.
async fn codes(collector: &Collector, request_id: &str, wanted: &[&str]) -> Vec<Seen> {
    let sorted = |mut codes: Vec<String>| -> Vec<String> {
        codes.sort();
        codes
    };
    let wanted = sorted(wanted.iter().map(|code| (*code).to_owned()).collect());
    let mut spans = Vec::new();
    eventually(&format!("spans {wanted:?}"), async || {
        spans = collector.of(request_id);
        sorted(spans.iter().map(|span| span.code.clone()).collect()) == wanted
    })
    .await;
    assert_eq!(spans.iter().map(|span| span.trace.as_str()).collect::<BTreeSet<_>>().len(), 1, "{spans:#?}");
    assert_eq!(spans.iter().map(|span| span.id.as_str()).collect::<BTreeSet<_>>().len(), spans.len(), "{spans:#?}");
    assert!(spans.iter().all(|span| span.took >= 0), "{spans:#?}");
    spans
}

#[test]
fn one_order_is_one_trace_through_separate_processes() {
    run_waiting(async {
        let collector = Collector::start(true).await;
        let traced = Traced::start(&["api", "relay", "consumer"], &collector, &[]).await;
        let Traced { world, sale, .. } = &traced;
        let (token, id) = world.token(sale, "alice").await;
        assert_eq!(world.buy(sale, "alice", 1, Some(&token)).await.status, 202);
        let spans = codes(&collector, &id, &["P1-S1", "P2-R0", "P3-N2", "P4-C0"]).await;
        let way = ["P1-S1", "P2-R0", "P3-N2", "P4-C0"].map(|code| with(&spans, code));
        assert_eq!(way.map(|span| span.name.as_str()), ["p1_entry", "p2_reserve", "p3_relay", "p4_persist"]);
        let node = &world.settings.runtime.node;
        let by = ["api", "api", "relay", "consumer"].map(|role| format!("{node}-{role}"));
        assert_eq!(way.map(|span| span.by.clone()), by);
        assert_eq!(way[0].parent, "", "the root");
        for (above, below) in way.iter().zip(&way[1..]) {
            assert_eq!(below.parent, above.id, "{} hangs under {}", below.name, above.name);
        }
        assert!(way.iter().all(|span| span.attempt == 1 && !span.failed), "{way:#?}");
        let trace = Trace::of(id.parse().unwrap(), MILLION).unwrap();
        assert_eq!(way[0].trace, format!("{:032x}", u128::from_be_bytes(trace.id())), "a person can work it out");

        // The same purchase again is the same trace, under its first call; nothing follows from it.
        assert_eq!(world.buy(sale, "alice", 1, Some(&token)).await.status, 202);
        let spans = codes(&collector, &id, &["P1-S1", "P1-S1", "P2-R0", "P2-R6", "P3-N2", "P4-C0"]).await;
        let replay = with(&spans, "P2-R6");
        let call = spans.iter().find(|span| span.id == replay.parent).expect("its call");
        assert_eq!((call.code.as_str(), call.parent.as_str()), ("P1-S1", way[0].id.as_str()));

        // Another order is another trace.
        let bob = world.bought(sale, "bob").await.to_string();
        let spans = codes(&collector, &bob, &["P1-S1", "P2-R0", "P3-N2", "P4-C0"]).await;
        assert_ne!(spans[0].trace, way[0].trace);
        traced.finish().await;
    });
}

#[test]
fn a_parked_and_compensated_order_shows_every_attempt_and_who_wrote_it_in_the_end() {
    run_waiting(async {
        let collector = Collector::start(true).await;
        let traced = Traced::start(&["api", "relay", "consumer", "reconcile"], &collector, &[]).await;
        let Traced { world, sale, .. } = &traced;
        world.sql(REFUSING_TRIGGER).await;
        let id = world.bought(sale, "cursed").await.to_string();
        let parked = ["P1-S1", "P2-R0", "P3-N2", "P4-C3", "P4-C3", "P4-C4"];
        let spans = codes(&collector, &id, &parked).await;
        let attempts: Vec<&Seen> = spans.iter().filter(|span| span.name == "p4_persist").collect();
        let numbers: BTreeSet<i64> = attempts.iter().map(|span| span.attempt).collect();
        assert_eq!((numbers, with(&spans, "P4-C4").attempt), (BTreeSet::from([1, 2, 3]), 3));
        let confirmed = with(&spans, "P3-N2").id.clone();
        assert!(attempts.iter().all(|span| span.failed && span.parent == confirmed), "{attempts:#?}");

        world.sql("DROP TRIGGER curse").await;
        let spans = codes(&collector, &id, &[parked.as_slice(), &["P5-COMP0"]].concat()).await;
        let written = with(&spans, "P5-COMP0");
        assert_eq!((written.name.as_str(), &written.parent), ("p5_reconcile", &with(&spans, "P2-R0").id));
        assert_eq!(written.by, format!("{}-reconcile", world.settings.runtime.node));
        assert!(!written.failed, "{written:?}");

        // One that the broker never got: P5 hangs under the same step.
        let relay = traced.roles.iter().find(|(role, _)| *role == "relay").expect("a relay");
        crate::support::processes::programs::signal(relay.1.program.pid(), libc::SIGSTOP);
        let lost = world.bought(sale, "lost").await.to_string();
        let outbox = world.servers.redis.keys.outbox(0);
        for entry in world.servers.redis.outbox.page(0, "-", 100).await.unwrap() {
            assert_eq!(redis(world.settings.redis.url.expose(), &["XDEL", &outbox, &entry.id]).await, 1);
        }
        crate::support::processes::programs::signal(relay.1.program.pid(), libc::SIGCONT);
        let spans = codes(&collector, &lost, &["P1-S1", "P2-R0", "P5-COMP0"]).await;
        assert_eq!(with(&spans, "P5-COMP0").parent, with(&spans, "P2-R0").id);
        traced.finish().await;
    });
}

#[test]
fn a_collector_that_hangs_costs_spans_and_nothing_else() {
    run_waiting(async {
        let collector = Collector::start(false).await;
        let set = ["traces.queue_max=4", "traces.export_timeout_ms=300"];
        let traced = Traced::start(&["api", "relay", "consumer"], &collector, &set).await;
        let Traced { world, sale, .. } = &traced;
        world.sell(sale, 200).await;
        eventually("every order", async || world.orders(sale).await == 200).await;
        for role in ["api", "relay", "consumer"] {
            let role = traced.role(role);
            role.until_metric("seckill_traces_dropped_total", |dropped| dropped > 0.0).await;
            role.until_metric("seckill_traces_failed_total", |failed| failed > 0.0).await;
            assert_eq!(role.metric("seckill_traces_exported_total").await, Some(0.0));
        }
        assert_eq!(collector.count(), 0);
        traced.finish().await;
    });
}
