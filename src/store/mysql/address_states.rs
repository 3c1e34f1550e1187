//! What each address of the database is at this moment, for operators.
//!
//! Input: the addresses. Output: of each whether it takes writes, and whether its commits are on its disk, read on a connection of its
//! own. A crash leaves nothing.

use super::checks::{self, Check};
use super::database_server::{DatabaseServer, Established};
use super::pool::Db;

/// What one address of several is at this moment.
pub(crate) struct AddressState {
    /// Host and port.
    pub(crate) address: String,
    /// In two words, or why there is no connection.
    pub(crate) found: Result<&'static str, String>,
    /// Whether its commits are on its disk; nothing without a connection.
    pub(crate) of_disk: Vec<Check>,
}

/// Connects to each server in turn, within the time-out each.
pub(crate) async fn address_states(db: &Db) -> Vec<AddressState> {
    let address = db.address();
    let mut states = Vec::new();
    for (index, server) in address.servers().iter().enumerate() {
        let reading = tokio::time::timeout(address.connect_timeout(), state(server, index));
        let read = reading.await.unwrap_or_else(|_elapsed| Err("connecting took too long".to_owned()));
        let (found, of_disk) = match read {
            Ok((found, of_disk)) => (Ok(found), of_disk),
            Err(error) => (Err(error), Vec::new()),
        };
        states.push(AddressState { address: server.shown(), found, of_disk });
    }
    states
}

/// What the server is, and its settings.
async fn state(server: &DatabaseServer, index: usize) -> Result<(&'static str, Vec<Check>), String> {
    let mut established = server.connect(index, false).await.map_err(|error| error.to_string())?;
    let found = match &established {
        Established { is_galera: true, .. } => "node of Galera",
        Established { is_read_only: true, .. } => "read-only",
        Established { .. } => "takes writes",
    };
    let of_disk = checks::of_server(&mut established.conn).await.map_err(|error| error.to_string())?;
    Ok((found, of_disk))
}
