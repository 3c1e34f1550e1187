//! Addresses of servers, as settings have them. Their passwords are never printed.
//!
//! The stores read the same text with the same crate, each with the rules of its protocol.

use serde::{Deserialize, Serialize, Serializer};
use std::fmt;
use std::net::IpAddr;
use url::Url;

const SHOWN: &str = "***";

/// The parameter with the password of the sentinels.
const SENTINEL_PASSWORD: &str = "sentinelPassword=";

const SENTINEL_USER: &str = "sentinelUsername=";
const EXPECTED: &str =
    "expected SCHEME://USER:PASSWORD@HOST:PORT/…, with # / ? @ and % of a password written as %23 %2F %3F %40 and %25";

/// A server address whose password is not shown.
#[derive(Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(transparent)]
pub struct ServerUrl(String);

impl ServerUrl {
    /// Wraps an address.
    #[must_use]
    pub const fn new(text: String) -> Self {
        Self(text)
    }

    /// The address with its password; the caller must not log it.
    #[must_use]
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// The scheme, without `://`.
    #[must_use]
    pub(crate) fn scheme(&self) -> &str {
        self.0.split_once("://").map_or("", |(scheme, _)| scheme)
    }

    /// Why it cannot be read, or would read another address than was meant. Shows nothing of it.
    pub(super) fn problem(&self) -> Option<String> {
        let url = match Url::parse(&self.0) {
            Ok(url) => url,
            Err(error) => return Some(format!("cannot be read ({error}), {EXPECTED}")),
        };
        if url.host_str().unwrap_or_default().is_empty() {
            return Some(format!("names no host, {EXPECTED}"));
        }
        is_cut(&url).then(|| format!("is cut at a # / or ? of its password, {EXPECTED}"))
    }

    /// What stands behind the host: the database, or the virtual host.
    pub(super) fn path(&self) -> String {
        Url::parse(&self.0).map(|url| url.path().to_owned()).unwrap_or_default()
    }

    /// Whether connections to it are encrypted.
    #[must_use]
    pub(crate) fn is_encrypted(&self) -> bool {
        matches!(self.scheme(), "rediss" | "rediss-cluster" | "rediss-sentinel" | "amqps" | "mysqls")
    }

    /// The user, percent-encoded; empty when there is none.
    #[must_use]
    pub(crate) fn user(&self) -> String {
        Url::parse(&self.0).map(|url| url.username().to_owned()).unwrap_or_default()
    }

    /// Whether any server in it is another machine, as far as the address shows. An address that cannot be read is.
    #[must_use]
    pub(crate) fn leaves_the_machine(&self) -> bool {
        let Ok(url) = Url::parse(&self.0) else { return true };
        let mut further = url
            .query_pairs()
            .filter(|(name, _)| name == "node")
            .map(|(_, node)| Url::parse(&format!("redis://{node}")));
        !(is_here(&url) && further.all(|node| node.is_ok_and(|node| is_here(&node))))
    }

    /// The address with `***` in place of each password; `***` when it cannot be read.
    #[must_use]
    pub(crate) fn redacted(&self) -> String {
        let Ok(mut url) = Url::parse(&self.0) else { return SHOWN.to_owned() };
        if is_cut(&url) {
            return format!("{}://{SHOWN}", url.scheme());
        }
        if url.password().is_some() && url.set_password(Some(SHOWN)).is_err() {
            return SHOWN.to_owned();
        }
        let query = url.query().map(|query| {
            let shown = query
                .split('&')
                .map(|part| if part.starts_with(SENTINEL_PASSWORD) { "sentinelPassword=***" } else { part });
            shown.collect::<Vec<_>>().join("&")
        });
        url.set_query(query.as_deref());
        url.into()
    }
}

/// Whether a part of the password stands behind the host: an unescaped `#`, `/` or `?` in it ends the host too early. Addresses of
/// servers have no fragment, and neither a path nor a parameter of theirs has an `@`, but for the login of sentinels.
fn is_cut(url: &Url) -> bool {
    let login = |part: &&str| part.starts_with(SENTINEL_PASSWORD) || part.starts_with(SENTINEL_USER);
    let mut parts = url.query().unwrap_or_default().split('&').filter(|part| !login(part));
    url.fragment().is_some() || url.path().contains('@') || parts.any(|part| part.contains('@'))
}

/// Whether its host is this machine.
pub(super) fn is_here(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default().trim_matches(['[', ']']);
    host == "localhost" || host.parse().is_ok_and(|ip: IpAddr| ip.is_loopback())
}

impl fmt::Debug for ServerUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.redacted())
    }
}

impl Serialize for ServerUrl {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.redacted())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_elsewhere_are_distinguished() {
        for here in ["redis://127.0.0.1:1", "amqp://u:p@localhost/%2f", "mysql://r@[::1]:3306/s", "amqp://[::1]/"] {
            assert!(!ServerUrl::new(here.into()).leaves_the_machine(), "{here}");
        }
        for away in ["rediss://10.0.0.1:1", "amqp://u:p@localhost.example/v", "redis-cluster://127.0.0.1:1?node=h:2"] {
            assert!(ServerUrl::new(away.into()).leaves_the_machine(), "{away}");
        }
        assert_eq!(ServerUrl::new("amqps://me:p@h/v".into()).user(), "me");
        assert_eq!(ServerUrl::new("redis://h:1".into()).user(), "");
    }

    #[test]
    fn an_address_that_is_cut_by_its_own_password_is_a_mistake_and_shows_nothing_of_it() {
        for scheme in ["redis", "amqp", "mysql"] {
            for mark in ["#", "/", "?"] {
                for (user, password) in [
                    ("u", format!("12{mark}hunter")),
                    ("u", format!("hunter{mark}34")),
                    ("u", format!("p@ss{mark}hunter")),
                ] {
                    let url = ServerUrl::new(format!("{scheme}://{user}:{password}@h:1/v"));
                    assert!(url.problem().is_some(), "{scheme} {password}");
                    let shown = format!("{url:?} {}", url.problem().unwrap());
                    assert!(!["hunter", "34", "12", "p@ss"].iter().any(|part| shown.contains(part)), "{shown}");
                }
                let escaped = format!("{scheme}://u:p%23%2F%3F@h:1/v");
                assert_eq!(ServerUrl::new(escaped).problem(), None);
            }
        }
        for good in [
            "redis-sentinel://h:1?sentinelServiceName=m&sentinelPassword=p@ss&node=h:2",
            "amqp://u:p@ss@h/%2f",
            "amqps://[::1]",
            "mysql://root@[::1]:1/s?prefer_socket=false",
        ] {
            assert_eq!(ServerUrl::new(good.into()).problem(), None, "{good}");
        }
        assert!(ServerUrl::new("mysql://".into()).problem().is_some());
    }

    #[test]
    fn passwords_never_show() {
        let sentinels = "redis-sentinel://h:1?sentinelServiceName=m&sentinelPassword=pass&node=h:2";
        for url in ["redis://:pa@ss@h:1", "amqp://u:pa@ss@h/%2f", "mysql://root:pass@h/db", sentinels] {
            let url = ServerUrl::new(url.into());
            assert!(url.redacted().contains("***"), "{url:?}");
            assert!(!format!("{url:?}{}", serde_json::to_string(&url).unwrap()).contains("pa"), "{url:?}");
        }
        assert_eq!(ServerUrl::new("mysql://root@h/db".into()).redacted(), "mysql://root@h/db");
        assert!(ServerUrl::new(sentinels.into()).redacted().ends_with("sentinelPassword=***&node=h:2"));
    }
}
