//! One table with rows of a sale, and along which index they are walked (`sections`).

/// One table with rows of a sale.
#[derive(Debug)]
pub struct ArchiveTable {
    /// Its name; in statements it is `t`.
    pub name: &'static str,
    /// What is walked; orders are walked along their outcomes, because no index of theirs fits every policy.
    pub(crate) spine: &'static str,
    /// Its rows, joined to the spine.
    pub(crate) from: &'static str,
    /// The alias of the spine.
    pub(crate) of: &'static str,
    pub(crate) sections: Sections,
    /// The key of the sections, of the spine.
    pub(crate) key: &'static str,
    /// The key is text.
    pub(crate) text: bool,
    /// Columns, and how each is written in JSON.
    pub(crate) columns: &'static [(&'static str, As)],
    /// The column that is summed, if any: units.
    pub units: Option<&'static str>,
    /// Its rows are exported and never removed.
    pub stays: bool,
}

#[derive(Debug, Clone, Copy)]
pub(crate) enum Sections {
    /// All of them along one key.
    Whole,
    /// Along the acceptance numbers of each series, then what has none.
    BySeries,
    /// By status of the register.
    ByStatus,
}

/// How a column becomes JSON.
#[derive(Debug, Clone, Copy)]
pub(crate) enum As {
    /// Numbers and text, as they are.
    Is,
    /// Ids and times: text, so that no reader rounds them.
    Text,
    /// Bytes that are text.
    Utf8,
    /// Bytes that may be anything: hexadecimal.
    Hex,
}

/// A table that is walked along a key of its own.
pub(super) const fn plain(name: &'static str, from: &'static str, key: &'static str) -> ArchiveTable {
    let (spine, sections, stays) = (from, Sections::Whole, false);
    ArchiveTable { name, spine, from, of: "t", sections, key, text: false, columns: &[], units: None, stays }
}

impl ArchiveTable {
    /// The names of its columns.
    pub fn columns(&self) -> impl Iterator<Item = &'static str> {
        self.columns.iter().map(|(name, _)| *name)
    }

    /// The file of its rows.
    #[must_use]
    pub(crate) fn file(&self) -> String {
        format!("{}.jsonl", self.name)
    }
}
