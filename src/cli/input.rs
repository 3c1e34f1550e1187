//! Files that commands read.
//!
//! Input: a path; `-` is standard input. Output: its text, bounded. Nothing is written.

use crate::cli::failure::Failure;
use std::io::Read;
use std::path::Path;

/// The text of a file; one above `bytes_max` is refused with `too_large`.
pub(super) fn text(file: &Path, bytes_max: u64, too_large: &str) -> Result<String, Failure> {
    let name = file.display();
    let unreadable = |error: std::io::Error| Failure::Usage(format!("--file: cannot read {name}: {error}"));
    let mut text = String::new();
    if file == Path::new("-") {
        std::io::stdin().take(bytes_max + 1).read_to_string(&mut text).map_err(unreadable)?;
    } else {
        let opened = std::fs::File::open(file).map_err(unreadable)?;
        opened.take(bytes_max + 1).read_to_string(&mut text).map_err(unreadable)?;
    }
    if text.len() as u64 > bytes_max {
        return Err(Failure::Usage(format!("--file: {name} is larger than {bytes_max} bytes, {too_large}")));
    }
    Ok(text)
}
