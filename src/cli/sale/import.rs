//! `seckill sale import`: many sales and drops of one file.
//!
//! Input: the file. Output: what was created and warmed, or every mistake in it. A crash leaves all of the drafts or none; repeating the
//! command does the rest.

use super::operator::SaleOperator;
use super::remark_on_times;
use crate::cli::failure::Failure;
use crate::cli::{input, output};
use crate::domain::ids::SaleId;
use crate::sales::forms::{Import, ImportEntry, ImportProblem};
use crate::sales::{ImportError, Imported};
use sha2::{Digest, Sha256};
use std::path::Path;

/// Largest file, bytes: a thousand sales with long titles and releases are below it.
const FILE_BYTES_MAX: u64 = 5_000_000;
/// Mistakes that are printed one by one.
const PRINTED_MAX: usize = 200;

/// A file that is as it has to be, by itself.
pub(super) struct ImportFile {
    import: Import,
    sha256: String,
}

impl ImportFile {
    /// Reads and checks it.
    pub(super) fn read(file: &Path) -> Result<Self, Failure> {
        let text = input::text(file, FILE_BYTES_MAX, "which no import may be: split it")?;
        let digest = Sha256::digest(text.as_bytes());
        let import = Import::read(&text)
            .map_err(|problems| Failure::Usage(listed(&format!("--file: {}", file.display()), &problems)))?;
        Ok(Self { import, sha256: digest.iter().map(|byte| format!("{byte:02x}")).collect() })
    }

    /// The sales that are to be opened at once.
    fn to_warm(&self, all: bool) -> impl Iterator<Item = &SaleId> {
        let is_asked = move |entry: &ImportEntry| all || matches!(entry, ImportEntry::Sale(_, true));
        let asked = self.import.entries.iter().filter(move |(_, entry)| is_asked(entry));
        asked.flat_map(|(_, entry)| entry.sales()).map(|(sale, _)| &sale.sale_id)
    }
}

/// What is wrong, a line each.
fn listed(head: &str, problems: &[ImportProblem]) -> String {
    let mut lines = vec![format!("{head}: nothing was imported")];
    lines.extend(problems.iter().take(PRINTED_MAX).map(|problem| format!("  {problem}")));
    if problems.len() > PRINTED_MAX {
        lines.push(format!("  and {} more", problems.len() - PRINTED_MAX));
    }
    lines.join("\n")
}

/// Creates them, then warms those that are to be.
pub(super) async fn run(operator: &SaleOperator, file: &ImportFile, warm: bool) -> Result<(), Failure> {
    let (control, actor) = (&operator.control, &operator.actor);
    let Imported { created, as_asked } = match control.import(actor, &file.import, &file.sha256).await {
        Ok(imported) => imported,
        Err(ImportError::Differs(problems)) => return Err(Failure::Failed(listed("the database", &problems))),
        Err(ImportError::Control(error)) => return Err(error.into()),
    };
    for (sale, _) in file.import.sales().filter(|(sale, _)| created.contains(&sale.sale_id)) {
        output::line(&format!("created {} with {} units", sale.sale_id, sale.stock));
        remark_on_times(sale);
    }
    output::line(&format!("created {} sales; {} exist as asked", created.len(), as_asked.len()));
    let mut failed = 0;
    for id in file.to_warm(warm) {
        match control.warm_imported(actor, id).await {
            Ok(()) => output::line(&format!("warmed {id}")),
            Err(error) => {
                failed += 1;
                output::remark(&format!("{id} was not warmed: {error}"));
            }
        }
    }
    if failed > 0 {
        return Err(Failure::Failed(format!(
            "{failed} sales were not warmed; repeat the command, which creates nothing twice"
        )));
    }
    Ok(())
}
