//! Web origins, as a browser names them: a list in a file, or one text with commas where only text can be given.

use serde::de::{SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use std::fmt;

/// Origins of web pages.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Origins(Vec<String>);

impl Origins {
    /// Whether there are none.
    #[must_use]
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Each part in turn.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(String::as_str)
    }

    /// What is wrong with each that is none. A browser compares an origin letter by letter with what it sends itself, so
    /// only that spelling is let through: another one would be accepted here and match nothing.
    pub(super) fn complaints(&self) -> impl Iterator<Item = String> {
        self.iter().filter_map(|text| complaint(text).map(|why| format!("{text:?} {why}")))
    }
}

fn complaint(text: &str) -> Option<String> {
    const EXPECTED: &str = "expected an origin as browsers send it, e.g. https://shop.example or http://127.0.0.1:3000";
    if text == "*" {
        return Some("would let every page of the web use a buyer's access token; name each origin".to_owned());
    }
    let Ok(url) = reqwest::Url::parse(text) else { return Some(format!("is not a url, {EXPECTED}")) };
    if !matches!(url.scheme(), "http" | "https") {
        return Some(format!("is not http:// or https://, {EXPECTED}"));
    }
    let sent = url.origin().ascii_serialization();
    (sent != text).then(|| format!("is more than an origin or spelled another way, browsers send {sent:?}"))
}

impl<'de> Deserialize<'de> for Origins {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ListOrText)
    }
}

struct ListOrText;

impl<'de> Visitor<'de> for ListOrText {
    type Value = Origins;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of origins, or a text with commas between them")
    }

    fn visit_str<E>(self, text: &str) -> Result<Origins, E> {
        Ok(Origins(text.split(',').map(str::trim).filter(|part| !part.is_empty()).map(str::to_owned).collect()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Origins, A::Error> {
        let mut origins = Vec::new();
        while let Some(origin) = list.next_element()? {
            origins.push(origin);
        }
        Ok(Origins(origins))
    }
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
