//! One struct a section of `config/default.toml`, where every key is documented with its unit and the effect of raising it.
#![allow(missing_docs, reason = "config/default.toml documents every key; tests/docs holds the two together")]

use super::admin_tokens::NamedTokens;
use super::fact_claims::FactClaims;
use super::origins::Origin;
use super::secret::Secret;
use super::server_url::ServerUrl;
use super::value_list::ValueList;
use super::webhooks::{Webhook, WebhookUrl};
use serde::{Deserialize, Serialize};

macro_rules! sections {
    ($($name:ident { $($(#[$attribute:meta])* $field:ident: $type:ty,)* })*) => {$(
        #[derive(Debug, Clone, Deserialize, Serialize)]
        #[serde(deny_unknown_fields)]
        pub struct $name { $($(#[$attribute])* pub $field: $type,)* }
    )*};
}

sections! {
    Settings {
        runtime: Runtime,
        log: Log,
        traces: Traces,
        http: Http,
        admin: Admin,
        auth: Auth,
        passes: Passes,
        risk: Risk,
        lines: Lines,
        redis: Redis,
        rabbitmq: Rabbitmq,
        mysql: Mysql,
        p1_entry: P1Entry,
        p2_reserve: P2Reserve,
        p3_relay: P3Relay,
        p4_persist: P4Persist,
        p5_reconcile: P5Reconcile,
        p6_fulfil: P6Fulfil,
        webhook_delivery: WebhookDelivery,
        // A list of tables: it has no place among the sections of the defaults.
        #[serde(default)]
        webhooks: Vec<Webhook>,
    }
    Runtime { node: String, drain_ms: u64, }
    Log { level: String, format: LogFormat, }
    Traces { otlp_endpoint: String, sample_per_million: u32, queue_max: usize, export_timeout_ms: u64, }
    Http {
        listen: String,
        listen_backlog: u16,
        workers_count: usize,
        body_bytes_max: usize,
        body_timeout_ms: u64,
        head_timeout_ms: u64,
        keep_alive_s: u64,
        write_timeout_s: u64,
        connections_max: usize,
        waiters_max: usize,
        cors_origins: ValueList<Origin>,
    }
    Admin { listen: String, token: Secret, tokens: NamedTokens, }
    Auth {
        algorithm: Algorithm,
        algorithms: ValueList<Algorithm>,
        secret: Secret,
        secrets: ValueList<Secret>,
        key_file: String,
        jwks_file: String,
        jwks_url: String,
        tls_ca_file: String,
        jwks_refresh_s: u64,
        reread_s: u64,
        issuer: String,
        audience: String,
        leeway_s: u64,
        verified_max: usize,
        facts: FactClaims,
    }
    Passes { secrets: ValueList<Secret>, key_file: String, jwks_file: String, jwks_url: String, tls_ca_file: String, }
    Risk {
        url: WebhookUrl,
        secrets: ValueList<Secret>,
        allow_http: bool,
        tls_ca_file: String,
        timeout_ms: u64,
        on_failure: OnRiskFailure,
        in_flight_max: usize,
        remember_s: u64,
        remembered_max: u64,
    }
    Lines { entries_max: u64, }
    Redis {
        url: ServerUrl,
        tls_ca_file: String,
        tls_cert_file: String,
        tls_key_file: String,
        prefix: String,
        mode: RedisMode,
        shards: u16,
        outbox: OutboxKind,
        outbox_format: u8,
        durability: Durability,
        wait_replicas: u16,
        wait_timeout_ms: u64,
        command_timeout_ms: u64,
        connect_timeout_ms: u64,
    }
    Rabbitmq {
        url: ServerUrl,
        urls: ValueList<ServerUrl>,
        tls_ca_file: String,
        tls_cert_file: String,
        tls_key_file: String,
        prefix: String,
        queue_type: QueueType,
        queues: u16,
        declare: bool,
        heartbeat_s: u16,
        connect_timeout_ms: u64,
    }
    Mysql {
        url: ServerUrl,
        urls: ValueList<ServerUrl>,
        tls_ca_file: String,
        tls_cert_file: String,
        tls_key_file: String,
        pool_max: usize,
        pool_wait_ms: u64,
        connect_timeout_ms: u64,
        statement_timeout_ms: u64,
    }
    P1Entry {
        user_rate_per_s: u32,
        global_rate_per_s: u32,
        in_flight_max: usize,
        backlog_max: u64,
        lag_max_ms: u64,
        adaptive: bool,
        token_ttl_s: u64,
        token_secret: Secret,
        token_secrets: ValueList<Secret>,
        quantity_max: u32,
        room_release_per_s: u32,
        room_places_max: u64,
        cache_ttl_ms: u64,
        cache_stale_max_ms: u64,
        missing_ttl_ms: u64,
        cache_sales_max: u64,
    }
    P2Reserve { group_max: usize, queue_max: usize, deadline_ms: u64, }
    P3Relay {
        attempts_max: u32,
        backoff_ms: u64,
        backoff_max_ms: u64,
        claim_idle_ms: u64,
        confirm_timeout_ms: u64,
        window_max: usize,
        bundle_max: usize,
        probe_max: usize,
        rate_per_s: u32,
        idle_ms: u64,
    }
    P4Persist {
        attempts_max: u32,
        retry_delay_ms: u64,
        retry_delay_max_ms: u64,
        writers_count: u16,
        prefetch: u16,
        group_max: usize,
        breaker_failures: u32,
        breaker_open_ms: u64,
        events: bool,
    }
    P5Reconcile {
        interval_ms: u64,
        window_ms: u64,
        compensate: Compensate,
        quiet_ms: u64,
        ledger_retention_s: u64,
        warm_ahead_ms: u64,
        auto_close_after_s: u64,
        findings_max: usize,
    }
    P6Fulfil {
        interval_ms: u64,
        group_max: u16,
        rate_per_s: u32,
    }
    WebhookDelivery {
        retry_ms: ValueList<u64>,
        deadline_ms: u64,
        in_flight_max: u16,
        in_flight_each_max: u16,
        retention_s: u64,
        tls_ca_file: String,
    }
}

macro_rules! choices {
    ($($name:ident { $($variant:ident = $text:literal,)* })*) => {$(
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
        pub enum $name { $(#[serde(rename = $text)] $variant,)* }

        impl $name {
            pub(super) const NAMES: &'static [&'static str] = &[$($text),*];
        }
    )*};
}

choices! {
    LogFormat { Text = "text", Json = "json", }
    Algorithm { Hs256 = "HS256", Rs256 = "RS256", Es256 = "ES256", EdDsa = "EdDSA", }
    OnRiskFailure { Allow = "allow", Refuse = "refuse", }
    RedisMode { Single = "single", Sentinel = "sentinel", Cluster = "cluster", }
    OutboxKind { Stream = "stream", List = "list", }
    Durability { Warn = "warn", Strict = "strict", }
    QueueType { Quorum = "quorum", Classic = "classic", }
    Compensate { Auto = "auto", Manual = "manual", }
}
