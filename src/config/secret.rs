//! Values that never reach a log, an error text or `config show`.

use secrecy::{ExposeSecret, SecretString};
use serde::{Deserialize, Serialize, Serializer};
use std::fmt;

const SHOWN: &str = "***";

/// A secret text; its memory is wiped when it is dropped. Printing or serialising it shows `***`, and nothing when it is empty,
/// so that a missing secret is seen.
#[derive(Clone, Default, Deserialize)]
#[serde(transparent)]
pub struct Secret(SecretString);

impl Secret {
    /// Wraps a secret.
    #[must_use]
    pub fn new(text: String) -> Self {
        Self(text.into())
    }

    /// The secret itself; the caller must not log it.
    #[must_use]
    pub fn expose(&self) -> &str {
        self.0.expose_secret()
    }

    fn shown(&self) -> &'static str {
        if self.expose().is_empty() { "" } else { SHOWN }
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.shown())
    }
}

impl Serialize for Secret {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.shown())
    }
}

/// A server address whose password is not shown.
#[derive(Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(transparent)]
pub struct ServerUrl(String);

/// A password that stands among the parameters.
const SENTINEL_PASSWORD: &str = "sentinelPassword=";

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
    pub fn scheme(&self) -> &str {
        self.0.split_once("://").map_or("", |(scheme, _)| scheme)
    }

    /// Whether connections to it are encrypted.
    #[must_use]
    pub fn is_encrypted(&self) -> bool {
        matches!(self.scheme(), "rediss" | "rediss-cluster" | "rediss-sentinel" | "amqps" | "mysqls")
    }

    /// The user, as it is written; empty: none.
    #[must_use]
    pub fn user(&self) -> &str {
        let rest = self.0.split_once("://").map_or("", |(_, rest)| rest);
        let login = rest.rsplit_once('@').map_or("", |(login, _)| login);
        login.split_once(':').map_or(login, |(user, _)| user)
    }

    /// Whether any server in it is another machine, as far as the address tells.
    #[must_use]
    pub fn leaves_the_machine(&self) -> bool {
        let rest = self.0.split_once("://").map_or("", |(_, rest)| rest);
        let place = rest.rsplit_once('@').map_or(rest, |(_, place)| place);
        let first = place.split(['/', '?']).next().unwrap_or_default();
        let further = place.split(['?', '&']).filter_map(|part| part.strip_prefix("node="));
        let is_here = |place: &str| {
            let host = match place.rsplit_once(':') {
                Some((host, _port)) if !place.ends_with(']') => host,
                Some(_) | None => place,
            };
            let host = host.trim_matches(['[', ']']);
            host == "localhost" || host.parse().is_ok_and(|ip: std::net::IpAddr| ip.is_loopback())
        };
        !std::iter::once(first).chain(further).all(is_here)
    }

    /// The address with `***` in place of the password.
    #[must_use]
    pub fn redacted(&self) -> String {
        let Some((scheme, rest)) = self.0.split_once("://") else { return SHOWN.to_owned() };
        let shown = match rest.rsplit_once('@') {
            Some((credentials, host)) => {
                let user = credentials.split_once(':').map_or(credentials, |(user, _)| user);
                let password = if credentials.contains(':') { ":***" } else { "" };
                format!("{scheme}://{user}{password}@{host}")
            }
            None => self.0.clone(),
        };
        match shown.split_once(SENTINEL_PASSWORD) {
            Some((before, after)) => {
                let further = after.split_once('&').map_or(String::new(), |(_, further)| format!("&{further}"));
                format!("{before}{SENTINEL_PASSWORD}***{further}")
            }
            None => shown,
        }
    }
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
    fn servers_elsewhere_are_told_apart() {
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
    fn passwords_never_show() {
        let sentinels = "redis-sentinel://h:1?sentinelServiceName=m&sentinelPassword=pass&node=h:2";
        for url in ["redis://:pa@ss@h:1", "amqp://u:pa@ss@h/%2f", "mysql://root:pass@h/db", sentinels] {
            let url = ServerUrl::new(url.into());
            assert!(!format!("{url:?}{}", serde_json::to_string(&url).unwrap()).contains("pa"), "{url:?}");
        }
        assert_eq!(ServerUrl::new("mysql://root@h/db".into()).redacted(), "mysql://root@h/db");
        assert!(ServerUrl::new(sentinels.into()).redacted().ends_with("sentinelPassword=***&node=h:2"));
        assert_eq!(format!("{:?}", Secret::new("x".into())), "***");
        assert_eq!(format!("{:?}", Secret::default()), "");
    }
}
