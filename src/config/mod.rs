//! Settings in layers: `config/default.toml` ← `--config` files ← environment ← `--set`; unknown keys refused, values and
//! relations checked, secrets never shown.

mod bounds;
mod check;
mod origins;
mod reference;
mod secret;
mod sections;
mod server_url;

pub(crate) use check::api_complaints;
pub(crate) use origins::Origins;
pub use reference::reference;
pub use secret::Secret;
pub use sections::*;
pub use server_url::ServerUrl;

use std::path::{Path, PathBuf};

/// The first layer, and the reference of every key.
pub const DEFAULT_TOML: &str = include_str!("../../config/default.toml");

/// A mistake in the configuration; exit code 64. The text names the key.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// A layer cannot be read, or has an unknown key or a value of the wrong type.
    #[error("configuration: {0}")]
    Layer(String),
    /// `--set` is not `section.key=value`.
    #[error("--set {0}: expected section.key=value")]
    Set(String),
    /// Values out of bounds or in contradiction, one a line.
    #[error("configuration is refused:\n  {}", .0.join("\n  "))]
    Refused(Vec<String>),
}

/// Where the layers above the defaults come from.
#[derive(Debug, Clone, Default)]
pub struct Layers {
    /// Files, later ones win.
    pub files: Vec<PathBuf>,
    /// `section.key=value`, later ones win.
    pub set: Vec<String>,
}

/// Environment variables that stand for one key each: they point at existing servers.
const URL_VARIABLES: [(&str, &str); 3] =
    [("SECKILL_REDIS_URL", "redis.url"), ("SECKILL_AMQP_URL", "rabbitmq.url"), ("SECKILL_MYSQL_URL", "mysql.url")];

impl Settings {
    /// Reads and checks all layers.
    pub fn load(layers: &Layers) -> Result<Self, ConfigError> {
        let settings = Self::read(layers)?;
        match check::complaints(&settings) {
            complaints if complaints.is_empty() => Ok(settings),
            complaints => Err(ConfigError::Refused(complaints)),
        }
    }

    /// The built-in defaults alone, whatever the surroundings say.
    fn defaults() -> Result<Self, ConfigError> {
        let defaults = config::File::from_str(DEFAULT_TOML, config::FileFormat::Toml);
        let built = config::Config::builder().add_source(defaults).build();
        built.and_then(config::Config::try_deserialize).map_err(|error| ConfigError::Layer(one_line(&error)))
    }

    fn read(layers: &Layers) -> Result<Self, ConfigError> {
        let layer = |error: config::ConfigError| ConfigError::Layer(one_line(&error));
        let mut builder =
            config::Config::builder().add_source(config::File::from_str(DEFAULT_TOML, config::FileFormat::Toml));
        for file in &layers.files {
            builder = builder.add_source(readable(file)?);
        }
        builder = builder.add_source(
            config::Environment::with_prefix("SECKILL").prefix_separator("__").separator("__").try_parsing(true),
        );
        for (variable, key) in URL_VARIABLES {
            if let Ok(url) = std::env::var(variable) {
                builder = builder.set_override(key, url).map_err(layer)?;
            }
        }
        for set in &layers.set {
            let (key, value) = set.split_once('=').ok_or_else(|| ConfigError::Set(set.clone()))?;
            if key.split('.').count() != 2 || key.split('.').any(str::is_empty) {
                return Err(ConfigError::Set(set.clone()));
            }
            builder = builder.set_override(key, typed(value)).map_err(layer)?;
        }
        builder.build().and_then(config::Config::try_deserialize).map_err(layer)
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

fn readable(file: &Path) -> Result<config::File<config::FileSourceFile, config::FileFormat>, ConfigError> {
    if !file.is_file() {
        return Err(ConfigError::Layer(format!("{} is not a readable file", file.display())));
    }
    Ok(config::File::from(file).format(config::FileFormat::Toml))
}

/// `--set` values are read as the type they look like; everything else is text.
fn typed(value: &str) -> config::Value {
    let kind = if let Ok(number) = value.parse::<i64>() {
        config::ValueKind::I64(number)
    } else if let Ok(flag) = value.parse::<bool>() {
        config::ValueKind::Boolean(flag)
    } else {
        config::ValueKind::String(value.to_owned())
    };
    config::Value::new(Some(&"--set".to_owned()), kind)
}

fn one_line(error: &config::ConfigError) -> String {
    error.to_string().split_whitespace().collect::<Vec<_>>().join(" ")
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
            ("traces.otlp_endpoint=127.0.0.1:4318", "traces.otlp_endpoint"),
            ("traces.otlp_endpoint=http://127.0.0.1:4318", "/v1/traces"),
            ("traces.otlp_endpoint=https://collector/v1/traces", "https:// is not supported"),
            ("traces.otlp_endpoint=http://me@collector/v1/traces", "OTEL_EXPORTER_OTLP_HEADERS"),
            ("traces.sample_per_million=1000001", "traces.sample_per_million"),
            ("http.cors_origins=*", "http.cors_origins"),
            ("http.cors_origins=https://a.example, https://b.example/x", "http.cors_origins: \"https://b.example/x\""),
            ("http.cors_origins=7", "list of origins"),
            ("justakey", "section.key=value"),
        ] {
            let error = load(&[set]).unwrap_err();
            assert!(error.contains(key), "{set}: {error}");
        }
    }

    #[test]
    fn origins_are_a_list_in_a_file_and_a_text_elsewhere() {
        let text = load(&["http.cors_origins=https://a.example, http://b.example:8080"]).unwrap().http.cors_origins;
        assert_eq!(text.iter().collect::<Vec<_>>(), ["https://a.example", "http://b.example:8080"]);
        assert!(load(&["http.cors_origins="]).unwrap().http.cors_origins.is_empty());
        let file = std::env::temp_dir().join(format!("seckill-origins-{}.toml", std::process::id()));
        std::fs::write(&file, "[http]\ncors_origins = [\"https://a.example\"]\n").unwrap();
        let listed = Settings::load(&Layers { files: vec![file.clone()], set: vec![] }).unwrap().http.cors_origins;
        std::fs::remove_file(file).unwrap();
        assert_eq!(listed.iter().collect::<Vec<_>>(), ["https://a.example"]);
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
    fn all_mistakes_are_told_at_once() {
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
