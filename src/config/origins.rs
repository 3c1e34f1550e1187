//! Web origins, as a browser names them.

use super::value_list::{ListValue, ValueList, trimmed};
use serde::{Deserialize, Serialize};

/// The origin of web pages.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Origin(String);

impl Origin {
    /// Its text.
    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

impl ListValue for Origin {
    const EXPECTED: &'static str = "a list of origins, or a text with commas between them";

    fn parts(text: &str) -> Result<Vec<Self>, String> {
        Ok(trimmed(text).map(|part| Self(part.to_owned())).collect())
    }
}

/// What is wrong with each that is none. A browser compares an origin letter by letter with what it sends itself, so only that
/// spelling is let through: another one would be accepted here and match nothing.
pub(super) fn complaints(origins: &ValueList<Origin>) -> impl Iterator<Item = String> {
    origins.all().iter().filter_map(|Origin(text)| complaint(text).map(|why| format!("{text:?} {why}")))
}

fn complaint(text: &str) -> Option<String> {
    const EXPECTED: &str = "expected an origin as browsers send it, e.g. https://shop.example or http://127.0.0.1:3000";
    if text == "*" {
        return Some("would let every page of the web use a buyer's access token; name each origin".to_owned());
    }
    let Ok(url) = url::Url::parse(text) else { return Some(format!("is not a url, {EXPECTED}")) };
    if !matches!(url.scheme(), "http" | "https") {
        return Some(format!("is not http:// or https://, {EXPECTED}"));
    }
    let sent = url.origin().ascii_serialization();
    (sent != text).then(|| format!("is more than an origin or spelled another way, browsers send {sent:?}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_spelling_that_browsers_send_is_an_origin() {
        for good in
            ["https://shop.example", "http://127.0.0.1:3000", "http://[::1]:8080", "https://xn--fiq228c.example"]
        {
            assert_eq!(complaint(good), None, "{good}");
        }
        for (bad, word) in [
            ("*", "every page"),
            ("null", "not a url"),
            ("shop.example", "not a url"),
            ("", "not a url"),
            ("file:///tmp", "http://"),
            ("https://shop.example/", "\"https://shop.example\""),
            ("https://shop.example/checkout", "\"https://shop.example\""),
            ("https://shop.example?x", "\"https://shop.example\""),
            ("https://Shop.example", "\"https://shop.example\""),
            ("https://shop.example:443", "\"https://shop.example\""),
            ("https://me@shop.example", "\"https://shop.example\""),
        ] {
            let why = complaint(bad).unwrap_or_default();
            assert!(why.contains(word), "{bad}: {why}");
        }
    }
}
