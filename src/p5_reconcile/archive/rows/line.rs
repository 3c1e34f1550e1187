//! A row of an archive as one line of JSON, written by the database itself.

use crate::p5_reconcile::archive::rows::table::ArchiveTable;
use crate::p5_reconcile::archive::rows::table::As::{Hex, Is, Text, Utf8};

impl ArchiveTable {
    /// A row as one JSON object.
    pub(crate) fn line(&self) -> String {
        let fields: Vec<String> = self
            .columns
            .iter()
            .map(|(name, kind)| match kind {
                Is => format!("'{name}', t.`{name}`"),
                Text => format!("'{name}', CAST(t.`{name}` AS CHAR)"),
                Utf8 => format!("'{name}', CONVERT(t.`{name}` USING utf8mb4)"),
                Hex => format!("'{name}', LOWER(HEX(t.`{name}`))"),
            })
            .collect();
        format!("JSON_OBJECT({})", fields.join(", "))
    }

    /// The units of a row.
    pub(crate) fn units_of_row(&self) -> String {
        self.units.map_or_else(|| "0".to_owned(), |units| format!("t.`{units}`"))
    }
}
