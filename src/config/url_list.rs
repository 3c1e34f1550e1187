//! Several addresses of one server.
//!
//! `rabbitmq.url` and `mysql.url` have defaults, so whether both keys are given is read from the layers above them.

use super::sections::{Mysql, Rabbitmq, Settings};
use super::server_url::ServerUrl;
use super::value_list::{ListValue, ValueList};
use std::collections::BTreeSet;

/// Most addresses of a list: each may cost a connect time-out.
const URLS_MAX: usize = 16;

impl ListValue for ServerUrl {
    const EXPECTED: &'static str = "a list of addresses, or a text with commas between them";
    const IS_SECRET: bool = true;

    /// A password may hold a comma: only one with a scheme behind it begins an address.
    fn parts(text: &str) -> Result<Vec<Self>, String> {
        let mut urls: Vec<String> = Vec::new();
        for part in text.split(',') {
            match urls.last_mut() {
                Some(last) if !part.contains("://") => last.extend([",", part]),
                _ => urls.push(part.to_owned()),
            }
        }
        let urls = urls.iter().map(|url| url.trim()).filter(|url| !url.is_empty());
        Ok(urls.map(|url| Self::new(url.to_owned())).collect())
    }
}

/// Addresses as one text, to be given in one variable; with their passwords.
#[must_use]
pub fn exposed(urls: &[ServerUrl]) -> String {
    urls.iter().map(ServerUrl::expose).collect::<Vec<_>>().join(",")
}

/// Addresses as one text, with `***` in place of each password.
#[must_use]
pub(crate) fn redacted(urls: &[ServerUrl]) -> String {
    urls.iter().map(ServerUrl::redacted).collect::<Vec<_>>().join(", ")
}

impl Rabbitmq {
    /// The addresses in the order in which they are tried, of `urls` or `url`; never none.
    #[must_use]
    pub fn urls_in_use(&self) -> &[ServerUrl] {
        in_use(&self.url, &self.urls)
    }
}

impl Mysql {
    /// The addresses in the order in which they are tried, of `urls` or `url`; never none.
    #[must_use]
    pub fn urls_in_use(&self) -> &[ServerUrl] {
        in_use(&self.url, &self.urls)
    }
}

fn in_use<'a>(one: &'a ServerUrl, list: &'a ValueList<ServerUrl>) -> &'a [ServerUrl] {
    if list.is_empty() { std::slice::from_ref(one) } else { list.all() }
}

/// What is wrong when both keys of a server are given; `given` has the keys of all layers above the defaults.
pub(super) fn both_given(settings: &Settings, given: &BTreeSet<String>) -> Vec<String> {
    let lists = [("rabbitmq", &settings.rabbitmq.urls), ("mysql", &settings.mysql.urls)];
    let both = lists.into_iter().filter(|(section, list)| {
        !list.is_empty() && ["url", "urls"].iter().all(|key| given.contains(&format!("{section}.{key}")))
    });
    both.map(|(section, _)| format!("{section}.url, {section}.urls: both are given, expected one of the two")).collect()
}

/// What is wrong with the addresses beside each other; each by itself is checked elsewhere.
pub(super) fn complaints(section: &str, list: &ValueList<ServerUrl>) -> Vec<String> {
    let (key, urls) = (format!("{section}.urls"), list.all());
    let mut found = Vec::new();
    if urls.len() > URLS_MAX {
        found.push(format!("{key}: has {} addresses, expected {URLS_MAX} at most", urls.len()));
    }
    if let Some(twice) = urls.iter().enumerate().find(|(at, url)| urls.iter().take(*at).any(|other| other == *url)) {
        found.push(format!("{key}: has {} twice", twice.1.redacted()));
    }
    let differs = |of: fn(&ServerUrl) -> String| urls.windows(2).any(|pair| matches!(pair, [a, b] if of(a) != of(b)));
    if differs(|url| url.scheme().to_owned()) {
        found.push(format!("{key}: some are encrypted and some are not, expected one scheme"));
    }
    if differs(ServerUrl::path) {
        let what = if section == "mysql" { "databases" } else { "virtual hosts" };
        found.push(format!("{key}: name different {what}, expected servers of one cluster"));
    }
    found
}

#[cfg(test)]
mod tests {
    use crate::config::{Layers, Settings};

    fn from_flags(set: &[&str]) -> Result<Settings, String> {
        let set = set.iter().map(|set| (*set).to_owned()).collect();
        Settings::load(&Layers { files: vec![], set }).map_err(|error| error.to_string())
    }

    fn from_file(name: &str, text: &str, set: &[&str]) -> Result<Settings, String> {
        let file = std::env::temp_dir().join(format!("seckill-urls-{name}-{}.toml", std::process::id()));
        std::fs::write(&file, text).unwrap();
        let set = set.iter().map(|set| (*set).to_owned()).collect();
        let settings = Settings::load(&Layers { files: vec![file.clone()], set });
        std::fs::remove_file(file).unwrap();
        settings.map_err(|error| error.to_string())
    }

    fn mysql(settings: &Settings) -> Vec<&str> {
        settings.mysql.urls_in_use().iter().map(|url| url.expose()).collect()
    }

    #[test]
    fn a_list_is_a_list_in_a_file_and_a_text_with_commas_elsewhere_and_one_url_is_a_list_of_one() {
        assert_eq!(mysql(&from_flags(&["mysql.url=mysql://a/s"]).unwrap()), ["mysql://a/s"]);
        let text = from_flags(&["mysql.urls=mysql://u:p,w@a/s, mysql://b/s"]).unwrap();
        assert_eq!(mysql(&text), ["mysql://u:p,w@a/s", "mysql://b/s"]);
        let file = from_file("list", "[mysql]\nurls = [\"mysql://a/s\", \"mysql://b/s\"]\n", &[]).unwrap();
        assert_eq!(mysql(&file), ["mysql://a/s", "mysql://b/s"]);
        let settings = from_flags(&["rabbitmq.urls=amqp://a,amqp://b:1"]).unwrap();
        assert_eq!(settings.rabbitmq.urls_in_use().len(), 2);
        assert_eq!(super::exposed(settings.rabbitmq.urls_in_use()), "amqp://a,amqp://b:1");
        assert_eq!(from_flags(&["rabbitmq.urls="]).unwrap().rabbitmq.urls_in_use().len(), 1);
    }

    #[test]
    fn both_keys_are_refused_by_name_in_one_layer_and_in_two() {
        for [one, list] in [
            ["mysql.url=mysql://u:hunter2@a/s", "mysql.urls=mysql://b/s"],
            ["rabbitmq.url=amqp://u:hunter2@a", "rabbitmq.urls=amqp://b"],
        ] {
            let error = from_flags(&[one, list]).unwrap_err();
            let key = one.split_once('=').unwrap().0;
            assert!(error.contains(&format!("{key}, {key}s: both are given")) && !error.contains("hunter2"), "{error}");
        }
        let error = from_file("both", "[mysql]\nurl = \"mysql://a/s\"\n", &["mysql.urls=mysql://b/s"]).unwrap_err();
        assert!(error.contains("mysql.url, mysql.urls: both are given"), "{error}");
    }

    #[test]
    fn addresses_of_a_list_fit_each_other() {
        let many = (0..17).map(|at| format!("amqp://h{at}")).collect::<Vec<_>>().join(",");
        for (set, word) in [
            ("mysql.urls=mysql://u:hunter2@a/s,mysql://u:hunter2@a/s", "mysql.urls: has mysql://u:***@a/s twice"),
            ("mysql.urls=mysql://a/s,mysql://b/t", "name different databases"),
            ("mysql.urls=mysqls://a/s,mysql://b/s", "some are encrypted"),
            ("mysql.urls=mysql://a/s,http://b/s", "expected mysql://"),
            ("mysql.urls=mysql://a/s,mysql://b/s?verify_ca=false", "verify_ca"),
            ("rabbitmq.urls=amqp://a/x,amqp://b/y", "name different virtual hosts"),
            (&format!("rabbitmq.urls={many}"), "16 at most"),
            ("mysql.urls=7", "mysql.url"),
        ] {
            let error = from_flags(&[set]).unwrap_err();
            assert!(error.contains(word) && !error.contains("hunter2"), "{set}: {error}");
        }
    }
}
