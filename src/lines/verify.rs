//! A draw recomputed from what is public of it, for `seckill line verify`. No server is asked.
//!
//! Input: the list of ids as `GET …/draw/entries` has it, and the document of `GET …/draw`. Output: the ranks, or everything that does not
//! agree. Values only.

use crate::domain::draw::{Bytes32, ListDigest, Ranks, commitment, from_hex, hex, key};
use crate::domain::ids::EntryId;
use crate::domain::line::LineState;
use crate::lines::document::DrawDocument;

/// What came of a draw that agrees with itself.
#[derive(Debug)]
pub(crate) struct Verified {
    pub(crate) entries: usize,
    pub(crate) digest: Bytes32,
    /// Of a line that is drawn.
    pub(crate) ranks: Option<Ranks>,
}

/// The ids of a list: decimal, ascending, one in each line.
///
/// # Errors
/// The first line that is none.
pub(crate) fn read_list(text: &str) -> Result<Vec<u64>, String> {
    let mut ids: Vec<u64> = Vec::with_capacity(text.len() / 19);
    for (no, line) in (1..).zip(text.split_terminator('\n')) {
        let id = EntryId::parse(line).map_err(|error| format!("line {no}: {error}"))?.get();
        if ids.last().is_some_and(|last| *last >= id) {
            return Err(format!("line {no}: {id} is not above the id before it"));
        }
        ids.push(id);
    }
    if text.is_empty() || text.ends_with('\n') { Ok(ids) } else { Err("the last line has no end".to_owned()) }
}

/// Recomputes a draw.
///
/// # Errors
/// What does not agree, a sentence each.
pub(crate) fn verify(ids: Vec<u64>, draw: &DrawDocument) -> Result<Verified, Vec<String>> {
    let state = LineState::from_code(&draw.state);
    let (Some(count), Some(digest), Some(seed)) = (draw.entries, &draw.digest, &draw.seed) else {
        return Err(vec![format!("the list is not sealed yet, its line is {}", draw.state)]);
    };
    let mut problems = Vec::new();
    let mut wrong = |what: String| problems.push(what);
    let computed = ListDigest::of(&ids);
    if ids.len() as u64 != count {
        wrong(format!("entries: the file has {}, the draw says {count}", ids.len()));
    }
    if hex(&computed) != *digest {
        wrong(format!("digest: that of the file is {}, the draw says {digest}", hex(&computed)));
    }
    let Some(seed) = from_hex(seed) else {
        wrong("seed: not 64 hexadecimal digits".to_owned());
        return Err(problems);
    };
    if hex(&commitment(&seed)) != draw.commitment {
        wrong(format!("seed: its SHA-256 is {}, the commitment is {}", hex(&commitment(&seed)), draw.commitment));
    }
    let is_drawn = state.is_some_and(LineState::is_drawn);
    if is_drawn && draw.needs_beacon != draw.beacon.is_some() {
        wrong("beacon: needs_beacon and beacon do not agree".to_owned());
    }
    if !problems.is_empty() {
        return Err(problems);
    }
    let entries = ids.len();
    let ranks = is_drawn.then(|| Ranks::new(ids, &key(&seed, draw.beacon.as_deref()), &computed));
    Ok(Verified { entries, digest: computed, ranks })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn draw() -> DrawDocument {
        let (seed, digest) = ([7; 32], ListDigest::of(&[3, 20, 100]));
        serde_json::from_value(serde_json::json!({
            "sale_id": "s", "kind": "raffle", "state": "DRAWN", "opens_at": "", "closes_at": "", "algorithm": "",
            "commitment": hex(&commitment(&seed)), "needs_beacon": false, "entries": 3, "digest": hex(&digest),
            "seed": hex(&seed), "beacon": null, "sealed_at": null, "drawn_at": null
        }))
        .unwrap()
    }

    fn problems(list: &str, change: impl FnOnce(&mut DrawDocument)) -> String {
        let mut draw = draw();
        change(&mut draw);
        verify(read_list(list).unwrap(), &draw).unwrap_err().join("; ")
    }

    #[test]
    fn a_draw_that_was_changed_anywhere_is_found() {
        let list = "3\n20\n100\n";
        let verified = verify(read_list(list).unwrap(), &draw()).unwrap();
        assert_eq!((verified.entries, verified.ranks.unwrap().first(9).len()), (3, 3));
        assert!(problems("3\n20\n", |_| ()).contains("entries: the file has 2"));
        assert!(problems("3\n20\n101\n", |_| ()).starts_with("digest:"));
        assert!(problems(list, |draw| draw.seed = Some(hex(&[8; 32]))).starts_with("seed: its SHA-256"));
        assert!(problems(list, |draw| draw.seed = Some("x".to_owned())).contains("64 hexadecimal"));
        assert!(problems(list, |draw| draw.beacon = Some("b".to_owned())).starts_with("beacon:"));
        assert!(problems(list, |draw| draw.seed = None).contains("not sealed"));
        let mut sealed = draw();
        sealed.state = "SEALED".to_owned();
        assert!(verify(read_list(list).unwrap(), &sealed).unwrap().ranks.is_none());
    }

    #[test]
    fn a_list_is_ascending_and_in_one_spelling() {
        assert_eq!(read_list("").unwrap(), [0_u64; 0]);
        for (list, said) in [
            ("3\n3\n", "line 2: 3 is not above"),
            ("3\n2\n", "line 2: 2 is not above"),
            ("3\n04\n", "line 2: entry_id is malformed"),
            ("3\r\n", "line 1: entry_id is malformed"),
            ("3\n\n", "line 2: entry_id is malformed"),
            ("3", "the last line has no end"),
        ] {
            assert!(read_list(list).unwrap_err().contains(said), "{list:?}");
        }
    }
}
