//! `[[webhooks]]`: who gets the events of orders by HTTP, and the pauses between tries.
//!
//! Input: tables in a file; there is no text for them. Output: webhooks as they stand. No complaint shows a secret, or an address,
//! which may hold one in its path.

use super::Settings;
use super::secret::Secret;
use super::server_url::is_here;
use super::value_list::{ListValue, ValueList};
use crate::domain::webhook::{WEBHOOK_EVENTS, WebhookSubscription, WebhookSubscriptions};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize, Serializer};
use std::collections::BTreeSet;
use url::Url;

/// Most webhooks: each is a row for every event that it wants, in the transaction of its change.
const WEBHOOKS_MAX: usize = 8;
/// Longest name, characters: its column's.
const NAME_CHARS_MAX: usize = 48;
/// Most secrets of a webhook: every message is signed with each of them.
const SECRETS_MAX: usize = 4;
/// What a secret of the Standard Webhooks form begins with.
const SECRET_PREFIX: &str = "whsec_";
/// Bytes of a secret, as that standard has them.
const SECRET_BYTES: std::ops::RangeInclusive<usize> = 24..=64;
/// Most pauses, and the longest one: a week.
const PAUSES_MAX: usize = 30;
const PAUSE_MS_MAX: u64 = 7 * 86_400_000;

/// One receiver.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Webhook {
    /// Its name, for rows, metrics and commands.
    pub name: String,
    /// Where it is.
    pub url: WebhookUrl,
    /// `whsec_<base64>`; every message is signed with each of them.
    pub secrets: ValueList<Secret>,
    /// The events that it wants.
    pub events: Vec<String>,
    /// Whether the address may be a plain one elsewhere, e.g. behind a proxy that encrypts.
    #[serde(default)]
    pub allow_http: bool,
}

/// An address that is shown without its path and query, which may hold a secret.
#[derive(Clone, Deserialize)]
#[serde(transparent)]
pub struct WebhookUrl(String);

impl WebhookUrl {
    /// The whole address; the caller must not log it.
    #[must_use]
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// Whether connections to it are encrypted, however its scheme is written.
    #[must_use]
    pub(crate) fn is_encrypted(&self) -> bool {
        Url::parse(&self.0).is_ok_and(|url| url.scheme() == "https")
    }

    /// Scheme, host and port; nothing of none.
    #[must_use]
    pub fn shown(&self) -> String {
        if self.0.is_empty() {
            return String::new();
        }
        let url = Url::parse(&self.0);
        url.map_or_else(|_| "***".to_owned(), |url| format!("{}/…", url.origin().ascii_serialization()))
    }
}

impl std::fmt::Debug for WebhookUrl {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.shown())
    }
}

impl Serialize for WebhookUrl {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.shown())
    }
}

/// The bytes of a secret; `None` when it has another form.
#[must_use]
pub(crate) fn secret_bytes(secret: &Secret) -> Option<Vec<u8>> {
    let bytes = STANDARD.decode(secret.expose().strip_prefix(SECRET_PREFIX)?).ok()?;
    SECRET_BYTES.contains(&bytes.len()).then_some(bytes)
}

impl Webhook {
    fn complaints(&self) -> Vec<String> {
        let mut found = Vec::new();
        let plain = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
        if !(1..=NAME_CHARS_MAX).contains(&self.name.len()) || !self.name.chars().all(plain) {
            found.push(format!("expected 1 to {NAME_CHARS_MAX} of A-Z a-z 0-9 . _ - as its name"));
        }
        found.extend(url_complaint(&self.url, self.allow_http).map(|why| format!("url: {why}")));
        found.extend(secret_complaints(self.secrets.all()));
        if self.events.is_empty() {
            found.push(format!("events: none, expected some of {}", WEBHOOK_EVENTS.join(", ")));
        }
        for event in self.events.iter().filter(|event| !WEBHOOK_EVENTS.contains(&event.as_str())) {
            found.push(format!("events: {event:?}, expected some of {}", WEBHOOK_EVENTS.join(", ")));
        }
        found
    }
}

/// What is wrong with the secrets of one who gets signed calls.
pub(super) fn secret_complaints(secrets: &[Secret]) -> Vec<String> {
    let mut found = Vec::new();
    if !(1..=SECRETS_MAX).contains(&secrets.len()) {
        found.push(format!("secrets: {}, expected 1 to {SECRETS_MAX}", secrets.len()));
    }
    for (index, secret) in secrets.iter().enumerate() {
        if secret_bytes(secret).is_none() {
            found.push(format!(
                "secrets: number {}: expected {SECRET_PREFIX} and the base64 of {} to {} random bytes, e.g. of: printf whsec_; \
                 openssl rand -base64 32",
                index + 1,
                SECRET_BYTES.start(),
                SECRET_BYTES.end()
            ));
        }
    }
    found
}

/// What is wrong with the address of one who gets signed calls.
pub(super) fn url_complaint(url: &WebhookUrl, allow_http: bool) -> Option<&'static str> {
    const EXPECTED: &str = "expected https://, or http:// for a loopback address or with allow_http = true";
    let Ok(url) = Url::parse(url.expose()) else { return Some("is not a url") };
    match url.scheme() {
        _ if !url.username().is_empty() || url.password().is_some() => {
            Some("has a user, expected an address without one: the signature shows who sends")
        }
        _ if url.fragment().is_some() => Some("has a fragment, expected an address without one"),
        "https" => None,
        "http" if is_here(&url) || allow_http => None,
        _ => Some(EXPECTED),
    }
}

/// What is wrong with the webhooks, and with the pauses between tries.
pub(super) fn complaints(s: &Settings) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    if s.webhooks.len() > WEBHOOKS_MAX {
        found.push(format!("webhooks: {}, expected at most {WEBHOOKS_MAX}", s.webhooks.len()));
    }
    let mut names = BTreeSet::new();
    for webhook in &s.webhooks {
        found.extend(webhook.complaints().into_iter().map(|why| format!("webhooks: {:?}: {why}", webhook.name)));
        if !names.insert(&webhook.name) {
            found.push(format!("webhooks: name {:?} is given twice", webhook.name));
        }
    }
    let pauses = s.webhook_delivery.retry_ms.all();
    let possible = (1..=PAUSES_MAX).contains(&pauses.len()) && pauses.iter().all(|ms| (10..=PAUSE_MS_MAX).contains(ms));
    if !possible {
        found.push(format!(
            "webhook_delivery.retry_ms: {pauses:?}, expected 1 to {PAUSES_MAX} pauses of 10 to {PAUSE_MS_MAX} milliseconds"
        ));
    }
    if !s.webhook_delivery.tls_ca_file.is_empty() && !s.webhooks.iter().any(|of| of.url.is_encrypted()) {
        found.push("webhook_delivery.tls_ca_file: given, but no webhook has an address with https://".to_owned());
    }
    found
}

impl Settings {
    /// Who wants which events, for those who write them.
    #[must_use]
    pub fn webhook_subscriptions(&self) -> WebhookSubscriptions {
        let of = |webhook: &Webhook| WebhookSubscription { name: webhook.name.clone(), events: webhook.events.clone() };
        WebhookSubscriptions::new(self.webhooks.iter().map(of).collect())
    }
}

/// Milliseconds.
impl ListValue for u64 {
    const EXPECTED: &'static str = "a list of milliseconds, or a text with commas between them";

    fn parts(text: &str) -> Result<Vec<Self>, String> {
        let read: Result<_, _> = text.split(',').map(|part| part.trim().parse()).collect();
        read.map_err(|error: std::num::ParseIntError| format!("{text:?}: {error}, expected milliseconds"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Layers;

    const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

    fn load(name: &str, text: &str) -> Result<Settings, String> {
        let file = std::env::temp_dir().join(format!("seckill-webhooks-{name}-{}.toml", std::process::id()));
        std::fs::write(&file, text).unwrap();
        let settings = Settings::load(&Layers { files: vec![file.clone()], set: vec![] });
        std::fs::remove_file(file).unwrap();
        settings.map_err(|error| error.to_string())
    }

    fn webhook(name: &str, url: &str, rest: &str) -> String {
        format!("[[webhooks]]\nname = \"{name}\"\nurl = \"{url}\"\n{rest}\n")
    }

    #[test]
    fn a_webhook_is_read_and_nothing_secret_of_it_is_shown() {
        let rest = format!("secrets = [\"{SECRET}\"]\nevents = [\"order.paid\"]");
        let settings = load("good", &webhook("shop", "https://shop.example/hooks/hunter2?key=hunter2", &rest)).unwrap();
        assert_eq!(settings.webhook_subscriptions().wanting("order.paid").collect::<Vec<_>>(), ["shop"]);
        assert_eq!(secret_bytes(&settings.webhooks[0].secrets.all()[0]).unwrap().len(), 24);
        let shown = format!("{settings:?}{}", serde_json::to_string(&settings).unwrap());
        assert!(shown.contains("https://shop.example/…") && shown.contains("***"), "{shown}");
        assert!(!shown.contains("hunter2") && !shown.contains("MfKQ9"), "{shown}");
        assert!(load("none", "").unwrap().webhooks.is_empty());
    }

    #[test]
    fn the_example_of_the_manual_is_accepted() {
        let page = include_str!("../../docs/operations.md");
        let example = page.split("```toml\n[[webhooks]]").nth(1).unwrap().split("```").next().unwrap();
        let settings = load("manual", &format!("[[webhooks]]{}", example.replace("whsec_…", SECRET))).unwrap();
        assert_eq!(
            settings.webhooks[0].events,
            WEBHOOK_EVENTS[..6],
            "events of sales only come to those who ask for them"
        );
    }

    #[test]
    fn each_mistake_is_named_with_its_webhook_and_no_secret_is_shown() {
        let good = format!("secrets = [\"{SECRET}\"]\nevents = [\"order.paid\"]");
        let twice = webhook("a", "https://h/", &good);
        let many: String = (0..9).map(|n| webhook(&format!("w{n}"), "https://h/", &good)).collect();
        let short = "secrets = [\"whsec_aHVudGVyMg==\"]\nevents = [\"order.paid\"]";
        for (text, word) in [
            (webhook("a b", "https://h/", &good), "webhooks: \"a b\": expected 1 to 48"),
            (format!("{twice}{twice}"), "webhooks: name \"a\" is given twice"),
            (many, "webhooks: 9, expected at most 8"),
            (webhook("a", "http://shop.example/hunter2", &good), "url: expected https://"),
            (webhook("a", "ftp://shop.example/hunter2", &good), "url: expected https://"),
            (webhook("a", "hunter2", &good), "url: is not a url"),
            (webhook("a", "https://me:hunter2@h/", &good), "url: has a user"),
            (webhook("a", "https://h/#hunter2", &good), "url: has a fragment"),
            (webhook("a", "https://h/", "secrets = []\nevents = [\"order.paid\"]"), "secrets: 0, expected 1 to 4"),
            (webhook("a", "https://h/", short), "secrets: number 1: expected whsec_"),
            (webhook("a", "https://h/", &short.replace("whsec_", "")), "secrets: number 1: expected whsec_"),
            (webhook("a", "https://h/", "secrets = { of = \"hunter2\" }\nevents = []"), "expected a list of texts"),
            (
                webhook("a", "https://h/", &good.replace("order.paid", "order.payed")),
                "events: \"order.payed\", expected",
            ),
            (webhook("a", "https://h/", &good.replace("\"order.paid\"", "")), "events: none, expected"),
            (webhook("a", "https://h/", &format!("{good}\nretries = 3")), "retries"),
            ("[webhook_delivery]\nretry_ms = [5]\n".to_owned(), "webhook_delivery.retry_ms: [5], expected"),
            ("[webhook_delivery]\nretry_ms = []\n".to_owned(), "webhook_delivery.retry_ms: [], expected"),
            ("[webhook_delivery]\ntls_ca_file = \"ca.pem\"\n".to_owned(), "webhook_delivery.tls_ca_file: given"),
            ("webhooks = 7\n".to_owned(), "webhooks: expected tables"),
        ] {
            let error = load("wrong", &text).unwrap_err();
            assert!(error.contains(word), "{word}: {error}");
            assert!(!error.contains("hunter2") && !error.contains("aHVudGVyMg"), "{error}");
        }
        let loud = load("loud", &webhook("a", "HTTPS://h/", &good)).unwrap();
        assert!(loud.webhooks[0].url.is_encrypted());
        for url in ["http://127.0.0.1:9/x", "http://localhost/", "http://[::1]:9/"] {
            assert!(load("here", &webhook("a", url, &good)).is_ok(), "{url}");
        }
        assert!(load("allowed", &webhook("a", "http://proxy/", &format!("{good}\nallow_http = true"))).is_ok());
    }

    #[test]
    fn pauses_are_a_list_or_a_text() {
        let of = |set: &str| {
            let layers = Layers { files: vec![], set: vec![format!("webhook_delivery.retry_ms={set}")] };
            Settings::load(&layers).map(|settings| settings.webhook_delivery.retry_ms.all().to_vec())
        };
        assert_eq!(of("100, 2000").unwrap(), [100, 2000]);
        assert!(of("soon").unwrap_err().to_string().contains("expected milliseconds"));
        // 75 hours, as the standard has it, with more tries in the first five minutes.
        let defaults = load("defaults", "").unwrap().webhook_delivery.retry_ms.all().iter().sum::<u64>();
        assert_eq!(defaults / 60_000, 75 * 60 + 35);
    }
}
