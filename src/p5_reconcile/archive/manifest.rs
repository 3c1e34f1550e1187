//! The manifest of an export (`manifest.json`), and reading an export again. The manifest is written last: a folder with one is whole.

use super::error::ArchiveError;
use crate::p5_reconcile::archive::rows::{ArchiveSum, ArchiveTable};
use crate::sales::rows::archived::SaleSums;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;

/// The file name of the manifest.
pub(super) const NAME: &str = "manifest.json";
/// A reader must know this number.
pub(super) const FORMAT: u32 = 1;

/// An export of one sale.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manifest {
    /// The version of this form, 1.
    pub format: u32,
    /// The sums that outlive the rows.
    #[serde(flatten)]
    pub sums: SaleSums,
    /// Requests with an outcome, by epoch and shard.
    pub series: Vec<SeriesSum>,
    /// The files, in the order in which rows are removed.
    pub files: Vec<ExportedFile>,
    /// The program that wrote it.
    pub program: String,
    /// When, Unix milliseconds.
    pub(crate) exported_at_ms: i64,
}

/// Outcomes of one shard in one epoch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SeriesSum {
    /// The epoch of the numbers.
    pub epoch: u32,
    /// The shard that gave the numbers.
    pub shard: u16,
    /// The last known acceptance number.
    pub number: u64,
    /// Numbers that have an outcome.
    pub outcomes: u64,
}

/// One file of JSON lines, with the rows of one table.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExportedFile {
    /// The name of the table.
    pub table: String,
    /// The name of the file.
    pub file: String,
    /// Rows and their units.
    #[serde(flatten)]
    pub sum: ArchiveSum,
    /// SHA-256 of the file, hexadecimal.
    pub(crate) sha256: String,
}

pub(super) fn hex(digest: &[u8]) -> String {
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

impl Manifest {
    /// The manifest of a folder with its own SHA-256; `None`: there is none, the export was not finished.
    pub(super) fn read(folder: &Path) -> Result<Option<(Self, String)>, ArchiveError> {
        let path = folder.join(NAME);
        let text = match std::fs::read(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(ArchiveError::File(path, error)),
        };
        let read: Option<Self> = serde_json::from_slice(&text).ok();
        let manifest = read.filter(|read| read.format == FORMAT).ok_or(ArchiveError::Damaged(path))?;
        Ok(Some((manifest, hex(&Sha256::digest(&text)))))
    }

    /// Writes it; returns its SHA-256.
    pub(super) fn write(&self, folder: &Path) -> Result<String, ArchiveError> {
        let path = folder.join(NAME);
        let failed = |error: std::io::Error| ArchiveError::File(path.clone(), error);
        let text = serde_json::to_vec_pretty(self).map_err(|error| failed(error.into()))?;
        whole(folder, NAME, |file| file.write_all(&text)).map_err(failed)?;
        Ok(hex(&Sha256::digest(&text)))
    }
}

/// Writes a file that is whole or absent: first under another name, and on the disk before it gets its own.
fn whole(folder: &Path, name: &str, write: impl FnOnce(&mut File) -> std::io::Result<()>) -> std::io::Result<()> {
    let part = folder.join(format!("{name}.part"));
    let mut file = File::create(&part)?;
    write(&mut file)?;
    finish(&file, folder, name)
}

/// Renames a `.part` to its own name.
pub(super) fn finish(file: &File, folder: &Path, name: &str) -> std::io::Result<()> {
    file.sync_all()?;
    std::fs::rename(folder.join(format!("{name}.part")), folder.join(name))?;
    File::open(folder)?.sync_all()
}

/// Reads a whole file of a table again; `None`: there is none yet. A line that is no row of the table is damage.
pub(super) fn read(folder: &Path, table: &ArchiveTable) -> Result<Option<ExportedFile>, ArchiveError> {
    let (name, path) = (table.file(), folder.join(table.file()));
    let file = match File::open(&path) {
        Ok(file) => file,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(ArchiveError::File(path, error)),
    };
    let (mut reader, mut line) = (BufReader::with_capacity(1 << 20, file), Vec::new());
    let (mut hash, mut sum) = (Sha256::new(), ArchiveSum::default());
    loop {
        line.clear();
        let read = reader.read_until(b'\n', &mut line).map_err(|error| ArchiveError::File(path.clone(), error))?;
        if read == 0 {
            break;
        }
        hash.update(&line);
        sum += row(table, &line).ok_or_else(|| ArchiveError::Damaged(path.clone()))?;
    }
    Ok(Some(ExportedFile { table: table.name.to_owned(), file: name, sum, sha256: hex(&hash.finalize()) }))
}

fn row(table: &ArchiveTable, line: &[u8]) -> Option<ArchiveSum> {
    let row: serde_json::Value = serde_json::from_slice(line).ok()?;
    let units = match table.units {
        Some(units) => row.get(units)?.as_i64()?,
        None => 0,
    };
    Some(ArchiveSum { rows: 1, units })
}
