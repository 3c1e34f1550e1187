//! What one node of a cluster believes about all of them: `CLUSTER NODES`, read.

/// One node, as another one sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Seen {
    pub(super) id: String,
    pub(super) port: u16,
    flags: Vec<String>,
    epoch: u64,
    /// First and last slot of each range it serves.
    slots: Vec<(u16, u16)>,
}

impl Seen {
    /// Whether it has a flag: `myself`, `master`, `slave`, `fail?`, `fail`, `handshake`.
    pub(super) fn is(&self, flag: &str) -> bool {
        self.flags.iter().any(|own| own == flag)
    }

    /// Whether it is known, in reach and believed alive.
    pub(super) fn is_well(&self) -> bool {
        !["fail?", "fail", "handshake", "noaddr"].iter().any(|flag| self.is(flag))
    }
}

/// Reads `id ip:port@bus flags primary ping pong epoch link slot-slot …` lines.
pub(super) fn read(text: &str) -> Vec<Seen> {
    text.lines().map(|line| line_of(line).unwrap_or_else(|| panic!("not a line of CLUSTER NODES: {line:?}"))).collect()
}

/// The port of the node that serves a slot, with the epoch of its claim.
pub(super) fn owner(view: &[Seen], slot: u16) -> Option<(u64, u16)> {
    let serves = |seen: &&Seen| seen.slots.iter().any(|(first, last)| (*first..=*last).contains(&slot));
    view.iter().find(serves).map(|seen| (seen.epoch, seen.port))
}

fn line_of(line: &str) -> Option<Seen> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let (id, address) = (words.first()?, words.get(1)?);
    // `127.0.0.1:port@bus`; a node that was only met has no name yet.
    let port = address.split('@').next()?.rsplit_once(':')?.1.parse().ok()?;
    // `[slot->-node]` is a slot on its way; it is still in its range.
    let ranges = words.iter().skip(8).filter(|word| !word.starts_with('['));
    let slots: Option<Vec<(u16, u16)>> = ranges.map(|range| range_of(range)).collect();
    Some(Seen {
        id: (*id).to_owned(),
        port,
        flags: words.get(2)?.split(',').map(str::to_owned).collect(),
        epoch: words.get(6)?.parse().ok()?,
        slots: slots?,
    })
}

fn range_of(text: &str) -> Option<(u16, u16)> {
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    Some((first.parse().ok()?, last.parse().ok()?))
}
