//! Reads the layers into one set of settings: `config/default.toml` ← `--config` files ← environment ← `--set`.
//!
//! Input: files, variables, flags. Output: settings whose values are not checked yet, or a mistake that names its key and
//! never shows a value that may be a secret. Variables and flags are texts: a text setting gets them as they are, and only
//! a number or a flag is read as one.

use super::algorithms::both_given;
use super::sections::Settings;
use super::server_url::ServerUrl;
use super::url_list::both_given as both_urls_given;
use super::value_list::ListValue;
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// The first layer, and the reference of every key.
pub const DEFAULT_TOML: &str = include_str!("../../config/default.toml");

/// A mistake in the configuration; exit code 64. The text names the key.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// A layer cannot be read, or has an unknown key or a value of the wrong type.
    #[error("configuration: {0}")]
    Layer(String),
    /// `--set` is not `section.key=value`; with its key, or its place among the flags.
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

impl Layers {
    /// Whether a file was given, or the environment has the address of a server.
    #[must_use]
    pub fn name_servers(&self) -> bool {
        let is_set = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
        let is_named = |(short, key): &(&str, &str)| {
            let long = format!("SECKILL__{}", key.replace('.', "__").to_uppercase());
            is_set(short) || is_set(&long) || is_set(&format!("{long}S"))
        };
        !self.files.is_empty() || URL_VARIABLES.iter().any(is_named)
    }
}

/// Environment variables that stand for one key each, or for its list: they point at existing servers.
const URL_VARIABLES: [(&str, &str); 3] =
    [("SECKILL_REDIS_URL", "redis.url"), ("SECKILL_AMQP_URL", "rabbitmq.url"), ("SECKILL_MYSQL_URL", "mysql.url")];

type Builder = config::ConfigBuilder<config::builder::DefaultState>;

/// The built-in defaults alone, whatever the surroundings say.
pub(super) fn defaults() -> Result<Settings, ConfigError> {
    built(with_defaults())
}

/// All layers. `variables` is the environment.
pub(super) fn read(
    layers: &Layers,
    variables: impl Iterator<Item = (OsString, OsString)>,
) -> Result<Settings, ConfigError> {
    let mut builder = with_defaults();
    let mut given = BTreeSet::new();
    for file in &layers.files {
        builder = builder.add_source(readable(file, &mut given)?);
    }
    let mut urls = Vec::new();
    for (name, value) in variables {
        let Some(name) = name.to_str() else { continue };
        if let Some((_, key)) = URL_VARIABLES.iter().find(|(variable, _)| *variable == name) {
            urls.push(((*key).to_owned(), name.to_owned(), value));
        } else if let Some(key) = name.to_lowercase().strip_prefix("seckill__") {
            let key = key.replace("__", ".");
            if !names_a_key(&key) {
                return Err(ConfigError::Layer(format!("{name}: expected SECKILL__SECTION__KEY")));
            }
            builder = with_text(builder, &key, name, value)?;
            given.insert(key);
        }
    }
    for (key, name, value) in urls {
        builder = with_address(builder, &key, &name, value)?;
        let replaced = [key.clone(), format!("{key}s")];
        given.retain(|given| !replaced.contains(given));
    }
    for (index, set) in layers.set.iter().enumerate() {
        // Without `=` it may be a value, and a secret.
        let (key, value) = set.split_once('=').ok_or_else(|| ConfigError::Set(format!("(number {})", index + 1)))?;
        if !names_a_key(key) {
            return Err(ConfigError::Set(key.to_owned()));
        }
        if ["rabbitmq.url", "mysql.url"].contains(&key) && !given.contains(&format!("{key}s")) {
            // A list that a short variable gave goes with it.
            builder = with_text(builder, &format!("{key}s"), "--set", OsString::new())?;
        }
        builder = with_text(builder, key, "--set", value.into())?;
        given.insert(key.to_lowercase());
    }
    let settings = built(builder)?;
    let complaints: Vec<String> =
        both_given(&settings.auth, &given).into_iter().chain(both_urls_given(&settings, &given)).collect();
    if complaints.is_empty() { Ok(settings) } else { Err(ConfigError::Refused(complaints)) }
}

/// The value of a short variable: one address, or several with commas. It stands for both keys of the server and replaces what
/// files and long variables gave for either.
fn with_address(builder: Builder, key: &str, name: &str, value: OsString) -> Result<Builder, ConfigError> {
    let list = format!("{key}s");
    let is_list = value.to_str().and_then(|text| ServerUrl::parts(text).ok()).is_some_and(|urls| urls.len() > 1);
    match key {
        "redis.url" => with_text(builder, key, name, value),
        _ if is_list => with_text(builder, &list, name, value),
        _ => with_text(with_text(builder, &list, name, OsString::new())?, key, name, value),
    }
}

fn with_defaults() -> Builder {
    config::Config::builder().add_source(config::File::from_str(DEFAULT_TOML, config::FileFormat::Toml))
}

fn built(builder: Builder) -> Result<Settings, ConfigError> {
    builder.build().and_then(config::Config::try_deserialize).map_err(|error| refused(&error))
}

fn names_a_key(key: &str) -> bool {
    key.split('.').count() == 2 && !key.split('.').any(str::is_empty)
}

fn with_text(builder: Builder, key: &str, origin: &str, value: OsString) -> Result<Builder, ConfigError> {
    let value = value.into_string().map_err(|_| ConfigError::Layer(format!("{origin}: is not UTF-8")))?;
    let value = config::Value::new(Some(&origin.to_owned()), config::ValueKind::String(value));
    builder.set_override(key, value).map_err(|error| refused(&error))
}

/// A file whose text is TOML with sections only; its keys go to `given`. The parser's own words would print the line, which may
/// hold a secret.
fn readable(
    file: &Path,
    given: &mut BTreeSet<String>,
) -> Result<config::File<config::FileSourceFile, config::FileFormat>, ConfigError> {
    let shown = file.display();
    if !file.is_file() {
        return Err(ConfigError::Layer(format!("{shown} is not a readable file")));
    }
    let text = std::fs::read_to_string(file)
        .map_err(|error| ConfigError::Layer(format!("{shown} is not a readable file: {error}")))?;
    let table = text.parse::<toml::Table>().map_err(|error| {
        let (line, column) = place(&text, error.span().map_or(0, |span| span.start));
        ConfigError::Layer(format!("{shown}, line {line}, column {column}: {}", error.message()))
    })?;
    for (section, value) in &table {
        given.extend(value.as_table().into_iter().flatten().map(|(key, _)| format!("{section}.{key}").to_lowercase()));
    }
    match table.iter().find(|(name, value)| !(value.is_table() || *name == "webhooks" && value.is_array())) {
        Some((name, _)) if name == "webhooks" => {
            Err(ConfigError::Layer(format!("{shown}: webhooks: expected tables, each headed by [[webhooks]]")))
        }
        Some((name, _)) => Err(ConfigError::Layer(format!("{shown}: {name} is not a section"))),
        None => Ok(config::File::from(file).format(config::FileFormat::Toml)),
    }
}

/// Line and column of a byte, both from 1.
fn place(text: &str, at: usize) -> (usize, usize) {
    let before = text.get(..at).unwrap_or(text);
    let line = before.rsplit('\n').next().unwrap_or_default();
    (before.matches('\n').count() + 1, line.chars().count() + 1)
}

fn refused(error: &config::ConfigError) -> ConfigError {
    // Its cause prints the line. The files were parsed before, so this is one that changed in between.
    if let config::ConfigError::FileParse { uri, .. } = error {
        return ConfigError::Layer(format!("{} is not TOML", uri.as_deref().unwrap_or("config/default.toml")));
    }
    ConfigError::Layer(error.to_string().split_whitespace().collect::<Vec<_>>().join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn from_environment(variables: &[(&str, &str)]) -> Result<Settings, String> {
        let variables = variables.iter().map(|(name, value)| ((*name).into(), (*value).into()));
        read(&Layers::default(), variables).map_err(|error| error.to_string())
    }

    fn from_flags(set: &[&str]) -> Result<Settings, String> {
        let set = set.iter().map(|set| (*set).to_owned()).collect();
        read(&Layers { files: vec![], set }, std::iter::empty()).map_err(|error| error.to_string())
    }

    fn from_file(name: &str, text: &str) -> Result<Settings, String> {
        let file = std::env::temp_dir().join(format!("seckill-{name}-{}.toml", std::process::id()));
        std::fs::write(&file, text).unwrap();
        let settings = read(&Layers { files: vec![file.clone()], set: vec![] }, std::iter::empty());
        std::fs::remove_file(file).unwrap();
        settings.map_err(|error| error.to_string())
    }

    /// Forty digits: neither `i64` nor `f64` holds them.
    const DIGITS: &str = "0123456789012345678901234567890123456789";

    #[test]
    fn texts_arrive_as_they_are_and_numbers_and_flags_are_read() {
        let secret = |at: &str| format!("{at}={DIGITS}");
        let flags = [
            &secret("auth.secret"),
            "admin.token=00120012001200120012001200120012",
            "auth.issuer=1.0",
            "auth.audience=true",
        ];
        let variables = [
            ("SECKILL__AUTH__SECRET", DIGITS),
            ("SECKILL__ADMIN__TOKEN", "00120012001200120012001200120012"),
            ("SECKILL__AUTH__ISSUER", "1.0"),
            ("SECKILL__AUTH__AUDIENCE", "true"),
        ];
        for settings in [from_flags(&flags).unwrap(), from_environment(&variables).unwrap()] {
            assert_eq!(settings.auth.secret.expose(), DIGITS);
            assert_eq!(settings.admin.token.expose(), "00120012001200120012001200120012");
            assert_eq!((settings.auth.issuer.as_str(), settings.auth.audience.as_str()), ("1.0", "true"));
        }
        let variables = [("SECKILL__P3_RELAY__WINDOW_MAX", "7"), ("SECKILL__RABBITMQ__DECLARE", "FALSE")];
        let settings = from_environment(&variables).unwrap();
        assert_eq!((settings.p3_relay.window_max, settings.rabbitmq.declare), (7, false));
        for wrong in ["7.5", "many", "", "-1"] {
            let error = from_environment(&[("SECKILL__P3_RELAY__WINDOW_MAX", wrong)]).unwrap_err();
            assert!(error.contains("p3_relay.window_max"), "{wrong}: {error}");
        }
    }

    #[test]
    fn the_short_variables_win_over_the_long_ones() {
        let both = [("SECKILL_REDIS_URL", "redis://short:1"), ("SECKILL__REDIS__URL", "redis://long:1")];
        assert_eq!(from_environment(&both).unwrap().redis.url.expose(), "redis://short:1");
    }

    #[test]
    fn the_short_variables_take_a_list_and_stand_for_both_keys() {
        let exposed = |settings: &Settings| super::super::exposed_urls(settings.mysql.urls_in_use());
        let several = "mysql://a:1/s,mysql://b:1/s";
        assert_eq!(exposed(&from_environment(&[("SECKILL_MYSQL_URL", several)]).unwrap()), several);
        let long = [("SECKILL__MYSQL__URLS", several), ("SECKILL_MYSQL_URL", "mysql://c:1/s")];
        assert_eq!(exposed(&from_environment(&long).unwrap()), "mysql://c:1/s");
        let long = [("SECKILL__MYSQL__URL", "mysql://c:1/s"), ("SECKILL_MYSQL_URL", several)];
        assert_eq!(exposed(&from_environment(&long).unwrap()), several);
        let variables = [("SECKILL_MYSQL_URL".into(), several.into())].into_iter();
        let flag = Layers { files: vec![], set: vec!["mysql.url=mysql://d:1/s".to_owned()] };
        assert_eq!(exposed(&read(&flag, variables).unwrap()), "mysql://d:1/s");
        let both = [("SECKILL__MYSQL__URL", "mysql://c:1/s"), ("SECKILL__MYSQL__URLS", several)];
        assert!(from_environment(&both).unwrap_err().contains("mysql.url, mysql.urls: both are given"));
    }

    #[test]
    fn a_syntax_error_names_its_place_and_never_shows_the_line() {
        for (name, text, place) in [
            ("quote", "[log]\nlevel = \"info\"\n[admin]\ntoken = \"hunter2-hunter2-hunter2\n", "line 4, column"),
            ("bare", "[auth]\nsecret = hunter2\n", "line 2, column 10"),
            ("section", "auth = \"hunter2\"\n", "auth is not a section"),
        ] {
            let error = from_file(name, text).unwrap_err();
            assert!(error.contains(place) && error.contains(&format!("seckill-{name}-")), "{error}");
            assert!(!error.contains("hunter2"), "{error}");
        }
    }

    #[test]
    fn a_wrong_flag_or_variable_is_named_without_its_value() {
        for (set, shown) in [
            ("auth.secret:hunter2", "--set (number 1): expected section.key=value"),
            ("auth.keys.secret=hunter2", "--set auth.keys.secret: expected section.key=value"),
            ("auth=hunter2", "--set auth: expected section.key=value"),
            ("auth.secrett=hunter2", "secrett"),
        ] {
            let error = from_flags(&[set]).unwrap_err();
            assert!(error.contains(shown) && !error.contains("hunter2"), "{error}");
        }
        for name in ["SECKILL__AUTH", "SECKILL__AUTH__KEYS__SECRET", "SECKILL__AUTH__SECRETT"] {
            let error = from_environment(&[(name, "hunter2")]).unwrap_err();
            assert!(error.to_lowercase().contains("auth") || error.contains("secrett"), "{error}");
            assert!(!error.contains("hunter2"), "{error}");
        }
    }
}
