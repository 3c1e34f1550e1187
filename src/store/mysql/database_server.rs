//! One server of the database: how the driver reaches it, and how a session on it begins.
//!
//! Input: its URL and the certificates. Output: connections whose sessions leave nothing to the server's own defaults that would
//! change a statement of ours. A crash leaves nothing.

use super::database_state::DatabaseState;
use crate::store::tls::advised;
use diesel::{ConnectionError, ConnectionResult};
use diesel_async::{AsyncMysqlConnection, SimpleAsyncConnection};
use mysql_async::{Opts, OptsBuilder, SslOpts, UrlError};
use url::Url;

/// Two things that the server's defaults may have otherwise: a repeated read must see what was committed meanwhile, and the session
/// must write.
const TRANSACTIONS: &str = "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED, READ WRITE";
/// Server-wide defaults that change what a statement does, set to what ours are written for: a statement alone is a transaction,
/// a commit ends one, rows are neither cut off nor refused for their number, unique keys are unique, and errors are in English
/// (`fault.rs`). No account needs a right for these.
const DEFAULTS: &str = "SET SESSION autocommit = 1, completion_type = 'NO_CHAIN', sql_safe_updates = 0, \
    sql_select_limit = 18446744073709551615, sql_big_selects = 1, sql_auto_is_null = 0, unique_checks = 1, foreign_key_checks = 1, \
    default_storage_engine = 'InnoDB', lc_messages = 'en_US', sql_mode = 'STRICT_ALL_TABLES,ERROR_FOR_DIVISION_BY_ZERO,\
    NO_ENGINE_SUBSTITUTION,NO_ZERO_DATE,NO_ZERO_IN_DATE'";
/// Error 1049, in whatever language the server has at the beginning of a session.
const UNKNOWN_DATABASE: u16 = 1049;

/// A new connection, and what its server is.
pub(crate) struct Established {
    pub(crate) conn: AsyncMysqlConnection,
    /// The server's place in the list.
    pub(crate) server: usize,
    /// Whether it is a node of a Galera cluster.
    pub(crate) is_galera: bool,
    pub(super) is_read_only: bool,
}

/// Deliberately without `Debug`: it holds the password.
pub(crate) struct DatabaseServer {
    /// As the driver reads it.
    url: String,
    options: Result<Opts, &'static str>,
    is_encrypted: bool,
}

impl DatabaseServer {
    pub(crate) fn new(url: String, tls: Option<&SslOpts>) -> Self {
        let url = over_the_network(url);
        let options = options(&url, tls);
        Self { url, options, is_encrypted: tls.is_some() }
    }

    /// As the driver reads it, with the password.
    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    /// Why the driver does not take the address, if it does not.
    pub(crate) fn unreadable(&self) -> Option<&'static str> {
        self.options.as_ref().err().copied()
    }

    /// Host and port, fit for a message.
    pub(crate) fn shown(&self) -> String {
        let url = Url::parse(&self.url).ok();
        let host = url.as_ref().and_then(Url::host_str).unwrap_or("unreadable address").to_owned();
        url.and_then(|url| url.port()).map_or(host.clone(), |port| format!("{host}:{port}"))
    }

    /// Connects, and sets up what every session has alike: those of the pool, of migrations and of `seckill doctor`.
    pub(crate) async fn connect(&self, server: usize, must_write: bool) -> ConnectionResult<Established> {
        let options = self.options.clone().map_err(|why| ConnectionError::InvalidConnectionUrl(why.to_owned()))?;
        let conn = mysql_async::Conn::new(options).await.map_err(|error| explained(self.is_encrypted, &error))?;
        let mut conn = AsyncMysqlConnection::try_from(conn).await?;
        for statement in [DEFAULTS, TRANSACTIONS] {
            conn.batch_execute(statement).await.map_err(ConnectionError::CouldntSetupConfiguration)?;
        }
        let state = DatabaseState::of(&mut conn).await.map_err(ConnectionError::CouldntSetupConfiguration)?;
        if must_write && state.is_read_only {
            return Err(ConnectionError::BadConnection("is read-only".to_owned()));
        }
        Ok(Established { conn, server, is_galera: state.is_galera, is_read_only: state.is_read_only })
    }
}

/// As diesel's own `establish` has them, which knows no certificates. Nor does it connect to an IPv6 address: an [`OptsBuilder`]
/// made of a URL takes the brackets for a part of a name. Source: `mysql_async` 0.36, `OptsBuilder::from_opts`.
fn options(url: &str, tls: Option<&SslOpts>) -> Result<Opts, &'static str> {
    // The driver's own words may quote a part of a password.
    let options = Opts::from_url(url).map_err(|error| match error {
        UrlError::UnknownParameter { .. } | UrlError::FeatureRequired { .. } => {
            "has a parameter that the driver does not know"
        }
        UrlError::InvalidParamValue { .. } | UrlError::InvalidPoolConstraints { .. } => {
            "has a parameter with a wrong value"
        }
        UrlError::Invalid | UrlError::Parse(_) | UrlError::UnsupportedScheme { .. } => "cannot be read",
    })?;
    let host = options.ip_or_hostname().trim_start_matches('[').trim_end_matches(']').to_owned();
    let options = OptsBuilder::from_opts(options).ip_or_hostname(host).stmt_cache_size(0).client_found_rows(true);
    Ok(match tls {
        Some(tls) => options.ssl_opts(tls.clone()).into(),
        None => options.into(),
    })
}

/// The address as it stands is meant. Left alone, the driver asks the server for its Unix socket and connects again over the path
/// of that name on this machine: another server, where this machine has one of its own, and without TLS.
/// Source: mysql_async 0.36, `Opts::prefer_socket`.
fn over_the_network(url: String) -> String {
    const CHOICE: &str = "prefer_socket";
    match Url::parse(&url) {
        Ok(mut parsed) if !parsed.query_pairs().any(|(name, _)| name == CHOICE) => {
            parsed.query_pairs_mut().append_pair(CHOICE, "false");
            parsed.into()
        }
        Ok(_) | Err(_) => url,
    }
}

fn explained(encrypted: bool, error: &mysql_async::Error) -> ConnectionError {
    let words = match error {
        mysql_async::Error::Server(error) if error.code == UNKNOWN_DATABASE => {
            format!("Unknown database: {}", error.message)
        }
        mysql_async::Error::Server(error) => error.message.clone(),
        mysql_async::Error::Driver(_)
        | mysql_async::Error::Io(_)
        | mysql_async::Error::Other(_)
        | mysql_async::Error::Url(_) => error.to_string(),
    };
    ConnectionError::BadConnection(advised("mysql", encrypted, &words))
}

#[cfg(test)]
mod tests {
    use super::{SslOpts, options};

    #[test]
    fn the_brackets_of_an_ipv6_address_are_no_part_of_the_host() {
        for (url, host, port) in [
            ("mysql://root:p@[::1]:3307/s", "::1", 3307),
            ("mysql://root@[2001:db8::7]/s", "2001:db8::7", 3306),
            ("mysql://root@127.0.0.1:1/s", "127.0.0.1", 1),
            ("mysql://root@db.example/s", "db.example", 3306),
        ] {
            for tls in [None, Some(&SslOpts::default())] {
                let options = options(url, tls).unwrap();
                assert_eq!((options.ip_or_hostname(), options.tcp_port()), (host, port), "{url}");
            }
        }
    }
}
