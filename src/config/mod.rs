//! Settings in layers: `config/default.toml` ← `--config` files ← environment ← `--set`; unknown keys refused, values and
//! relations checked, secrets never shown.

mod admin_tokens;
mod algorithms;
mod bounds;
mod check;
mod fact_claims;
mod key_settings;
mod layers;
mod origins;
mod reference;
mod risk;
mod secret;
mod secret_list;
mod sections;
mod server_url;
mod url_list;
mod value_list;
mod webhooks;

pub use admin_tokens::{OperatorRole, TOKEN_BYTES_MIN};
#[cfg(test)]
pub(crate) use bounds::CACHE_STALE_MAX_LEAST_MS;
pub(crate) use check::api_complaints;
pub(crate) use fact_claims::FactClaims;
pub(crate) use key_settings::{KeySection, KeySettings};
pub use layers::{ConfigError, DEFAULT_TOML, Layers};
pub(crate) use origins::Origin;
pub use reference::reference;
pub use secret::Secret;
pub use sections::*;
pub use server_url::ServerUrl;
pub use url_list::exposed as exposed_urls;
pub(crate) use url_list::redacted as redacted_urls;
pub use value_list::ValueList;
pub(crate) use webhooks::secret_bytes as webhook_secret_bytes;
pub use webhooks::{Webhook, WebhookUrl};

impl Settings {
    /// Reads and checks all layers.
    pub fn load(layers: &Layers) -> Result<Self, ConfigError> {
        let settings = layers::read(layers, std::env::vars_os())?;
        match check::complaints(&settings) {
            complaints if complaints.is_empty() => Ok(settings),
            complaints => Err(ConfigError::Refused(complaints)),
        }
    }

    /// This process's name among its peers: `runtime.node`, or the host name.
    #[must_use]
    pub fn node(&self) -> String {
        if !self.runtime.node.is_empty() {
            return self.runtime.node.clone();
        }
        std::fs::read_to_string("/proc/sys/kernel/hostname")
            .ok()
            .map(|name| name.trim().to_owned())
            .filter(|name| !name.is_empty())
            .unwrap_or_else(|| "node".to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn load(set: &[&str]) -> Result<Settings, String> {
        let set = set.iter().map(|s| (*s).to_owned()).collect();
        Settings::load(&Layers { files: vec![], set }).map_err(|error| error.to_string())
    }

    #[test]
    fn the_defaults_are_accepted_and_later_layers_win() {
        assert_eq!(load(&[]).unwrap().p2_reserve.group_max, 256);
        assert_eq!(load(&["p2_reserve.group_max=7", "p2_reserve.group_max=8"]).unwrap().p2_reserve.group_max, 8);
        assert_eq!(load(&["redis.url=redis://h:1"]).unwrap().redis.url.expose(), "redis://h:1");
    }

    #[test]
    fn a_mistake_is_named_with_its_key() {
        for (set, key) in [
            ("p2_reserve.group_maxx=7", "group_maxx"),
            ("p2_reserve.group_max=many", "group_max"),
            ("p2_reserve.group_max=0", "p2_reserve.group_max"),
            ("p2_reserve.group_max=-1", "group_max"),
            ("nonsense.key=1", "nonsense"),
            ("rabbitmq.queue_type=fast", "fast"),
            ("redis.url=http://h", "redis.url"),
            ("http.listen=here", "http.listen"),
            ("p3_relay.confirm_timeout_ms=99999", "p3_relay.confirm_timeout_ms"),
            ("p4_persist.prefetch=10", "p4_persist.group_max"),
            ("p1_entry.token_ttl_s=86400", "p1_entry.token_ttl_s"),
            ("redis.shards=65", "redis.shards"),
            ("p1_entry.cache_stale_max_ms=499", "p1_entry.cache_stale_max_ms: 499, expected 500 to 60000"),
            ("traces.otlp_endpoint=127.0.0.1:4318", "traces.otlp_endpoint"),
            ("traces.otlp_endpoint=http://127.0.0.1:4318", "/v1/traces"),
            ("traces.otlp_endpoint=https://collector/v1/traces", "https:// is not supported"),
            ("traces.otlp_endpoint=http://me@collector/v1/traces", "OTEL_EXPORTER_OTLP_HEADERS"),
            ("traces.sample_per_million=1000001", "traces.sample_per_million"),
            ("http.cors_origins=*", "http.cors_origins"),
            ("http.cors_origins=https://a.example, https://b.example/x", "http.cors_origins: \"https://b.example/x\""),
            ("http.cors_origins=7", "http.cors_origins: \"7\""),
            ("justakey", "section.key=value"),
        ] {
            let error = load(&[set]).unwrap_err();
            assert!(error.contains(key), "{set}: {error}");
        }
    }

    #[test]
    fn origins_are_a_list_in_a_file_and_a_text_elsewhere() {
        let text = load(&["http.cors_origins=https://a.example, http://b.example:8080"]).unwrap().http.cors_origins;
        assert_eq!(
            text.all().iter().map(Origin::as_str).collect::<Vec<_>>(),
            ["https://a.example", "http://b.example:8080"]
        );
        assert!(load(&["http.cors_origins="]).unwrap().http.cors_origins.is_empty());
        let file = std::env::temp_dir().join(format!("seckill-origins-{}.toml", std::process::id()));
        std::fs::write(&file, "[http]\ncors_origins = [\"https://a.example\"]\n").unwrap();
        let listed = Settings::load(&Layers { files: vec![file.clone()], set: vec![] }).unwrap().http.cors_origins;
        std::fs::remove_file(file).unwrap();
        assert_eq!(listed.all().iter().map(Origin::as_str).collect::<Vec<_>>(), ["https://a.example"]);
    }

    #[test]
    fn the_wait_for_replicas_is_part_of_the_call() {
        let quick = "redis.command_timeout_ms=400";
        assert!(load(&[quick]).is_ok(), "it does not count without replicas");
        let error = load(&[quick, "redis.wait_replicas=1"]).unwrap_err();
        assert!(error.contains("redis.wait_timeout_ms"), "{error}");
        assert!(load(&[quick, "redis.wait_replicas=1", "redis.wait_timeout_ms=399"]).is_ok());
        assert!(load(&["redis.durability=lax"]).unwrap_err().contains("lax"));
    }

    #[test]
    fn all_mistakes_are_reported_at_once() {
        let error = load(&["p2_reserve.group_max=0", "http.listen=x"]).unwrap_err();
        assert!(error.contains("group_max") && error.contains("http.listen"), "{error}");
    }

    #[test]
    fn the_documented_test_settings_pass_the_relation_checks() {
        let settings = load(&[
            "p3_relay.confirm_timeout_ms=2000",
            "p3_relay.claim_idle_ms=4000",
            "p5_reconcile.window_ms=5000",
            "p5_reconcile.interval_ms=1000",
            "p4_persist.retry_delay_ms=200",
            "p4_persist.attempts_max=3",
            "p3_relay.attempts_max=3",
        ]);
        assert!(settings.is_ok(), "{settings:?}");
    }

    #[test]
    fn the_api_needs_its_keys() {
        let settings = load(&[]).unwrap();
        let complaints = api_complaints(&settings).join("\n");
        assert!(complaints.contains("auth.secret") && complaints.contains("p1_entry.token_secret"), "{complaints}");
    }
}
