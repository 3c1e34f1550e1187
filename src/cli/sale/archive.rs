//! `seckill sale archive`: says what it does on standard error and what came of it on standard output.

use crate::cli::{Failure, output};
use crate::domain::ids::SaleId;
use crate::domain::operator::Actor;
use crate::p5_reconcile::ReconcileContext;
use crate::p5_reconcile::archive::{Archive, ArchiveError, Manifest, Removed};
use indicatif::ProgressBar;
use std::path::Path;
use std::time::Duration;

impl From<ArchiveError> for Failure {
    fn from(error: ArchiveError) -> Self {
        Self::Failed(error.to_string())
    }
}

pub(super) async fn run(
    context: ReconcileContext,
    actor: &Actor,
    (id, to): (&SaleId, &Path),
    remove: bool,
) -> Result<(), Failure> {
    let spinner = ProgressBar::new_spinner();
    spinner.enable_steady_tick(Duration::from_millis(100));
    let told = spinner.clone();
    let archive =
        Archive::new(context, id.clone(), to, Box::new(move |words: &str| told.set_message(words.to_owned())));
    let done = if remove { removed(&archive, actor).await } else { exported(&archive).await };
    spinner.finish_and_clear();
    output::line(&done?);
    Ok(())
}

async fn exported(archive: &Archive) -> Result<String, ArchiveError> {
    let (manifest, hash) = archive.export().await?;
    let Manifest { sale_id, orders_count, ordered, outcomes_count, .. } = manifest;
    Ok(format!(
        "{sale_id} is in {}: {orders_count} orders of {ordered} units, {outcomes_count} requests with an outcome, as the database has them\n\
         SHA-256 of manifest.json: {hash}\n\
         when the folder is in a safe place, --remove takes the sale's rows out of the database",
        archive.folder().display()
    ))
}

async fn removed(archive: &Archive, actor: &Actor) -> Result<String, ArchiveError> {
    match archive.remove(actor, usize::MAX).await? {
        Removed::All => {
            Ok(format!("the rows are gone from the database, the export is in {}", archive.folder().display()))
        }
        Removed::Stopped => Ok("not all rows are gone; repeat the command".to_owned()),
    }
}
