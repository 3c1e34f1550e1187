//! The draw of a line as the public sees it: what `GET /v1/sales/{sale_id}/draw` answers and `seckill line verify` reads.

use crate::domain::draw::{ALGORITHM, hex};
use crate::http::times::shown_time;
use crate::lines::rows::Line;
use serde::{Deserialize, Serialize};

/// The draw of a sale's line. What is not public yet is null.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[schema(as = Draw)]
pub(crate) struct DrawDocument {
    pub(crate) sale_id: String,
    /// How ranks come about.
    #[schema(example = "raffle")]
    pub(crate) kind: String,
    /// OPEN, CLOSED (no entry is added any more), SEALED (the list is settled, its digest and the seed are public), DRAWN, or DONE (no offer
    /// is made any more).
    #[schema(example = "DRAWN")]
    pub(crate) state: String,
    /// From when entries are taken, RFC 3339.
    pub(crate) opens_at: String,
    /// Until when, RFC 3339.
    pub(crate) closes_at: String,
    /// SHA-256 of the seed, in hexadecimal: the same from the creation of the sale on.
    pub(crate) commitment: String,
    /// Whether it is drawn only with a text from outside that an operator gives after the close.
    pub(crate) needs_beacon: bool,
    /// Entries of the list.
    pub(crate) entries: Option<u64>,
    /// SHA-256 of the list, in hexadecimal.
    pub(crate) digest: Option<String>,
    /// In hexadecimal.
    pub(crate) seed: Option<String>,
    /// The text from outside.
    pub(crate) beacon: Option<String>,
    /// RFC 3339.
    pub(crate) sealed_at: Option<String>,
    /// RFC 3339.
    pub(crate) drawn_at: Option<String>,
    /// How ranks follow from all this.
    pub(crate) algorithm: String,
}

impl DrawDocument {
    /// What is public of this line.
    pub(crate) fn of(line: &Line) -> Self {
        let sealed = line.sealed.as_ref();
        Self {
            sale_id: line.sale_id.to_string(),
            kind: line.kind.code().to_owned(),
            state: line.state.code().to_owned(),
            opens_at: shown_time(line.opens_at_ms),
            closes_at: shown_time(line.closes_at_ms),
            commitment: hex(&line.commitment),
            needs_beacon: line.needs_beacon,
            entries: sealed.map(|sealed| sealed.entries),
            digest: sealed.map(|sealed| hex(&sealed.digest)),
            seed: sealed.map(|sealed| hex(&sealed.seed)),
            beacon: line.beacon.clone(),
            sealed_at: sealed.map(|sealed| shown_time(sealed.at_ms)),
            drawn_at: line.drawn_at_ms.map(shown_time),
            algorithm: ALGORITHM.to_owned(),
        }
    }
}
