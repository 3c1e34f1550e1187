//! What a server says about itself.

use super::fault::RedisFault;
use super::node::Node;
use super::values::text;

/// A server between a start or promotion and the next one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerIncarnation {
    /// Changes when the process restarts.
    pub run_id: String,
    /// Changes when the server is promoted.
    pub(crate) replication_id: String,
}

impl ServerIncarnation {
    pub(in crate::store::redis) async fn of(node: &Node) -> Result<Self, RedisFault> {
        Ok(Self {
            run_id: info_field(node, "server", "run_id").await?,
            replication_id: info_field(node, "replication", "master_replid").await?,
        })
    }
}

/// One field of a section of `INFO`.
pub(in crate::store::redis) async fn info_field(
    node: &Node,
    section: &'static str,
    field: &str,
) -> Result<String, RedisFault> {
    let info = node.command("INFO", vec![text(section)]).await?.as_string().unwrap_or_default();
    value_in(&info, field)
        .map(str::to_owned)
        .ok_or_else(|| RedisFault::Contract(format!("INFO {section} has no {field}")))
}

/// The value of a field in an answer of `INFO`.
pub(in crate::store::redis) fn value_in<'a>(info: &'a str, field: &str) -> Option<&'a str> {
    info.lines().find_map(|line| line.strip_prefix(field)?.strip_prefix(':')).map(str::trim)
}
