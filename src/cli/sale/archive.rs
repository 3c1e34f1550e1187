//! `seckill sale archive` and `seckill drop archive`: print progress on standard error and the result on standard output.

use crate::cli::failure::Failure;
use crate::cli::{context, output};
use crate::config::Settings;
use crate::domain::ids::{DropId, SaleId};
use crate::domain::operator::Actor;
use crate::p5_reconcile::ReconcileContext;
use crate::p5_reconcile::archive::{Archive, ArchiveError, Removed};
use crate::roles::Servers;
use crate::sales::rows::archived::SaleSums;
use indicatif::ProgressBar;
use std::path::PathBuf;
use std::time::Duration;

impl From<ArchiveError> for Failure {
    fn from(error: ArchiveError) -> Self {
        Self::Failed(error.to_string())
    }
}

/// What to archive, and where to.
pub(super) struct ArchiveArgs {
    pub id: SaleId,
    pub to: PathBuf,
    pub remove: bool,
}

pub(super) async fn run(context: ReconcileContext, actor: &Actor, args: &ArchiveArgs) -> Result<(), Failure> {
    let spinner = ProgressBar::new_spinner();
    spinner.enable_steady_tick(Duration::from_millis(100));
    let shown = spinner.clone();
    let archive = Archive::new(
        context,
        args.id.clone(),
        &args.to,
        Box::new(move |words: &str| shown.set_message(words.to_owned())),
    );
    let done = if args.remove { removed(&archive, actor).await } else { exported(&archive).await };
    spinner.finish_and_clear();
    output::line(&done?);
    Ok(())
}

/// Archives each sale of a drop that is not archived yet; one that is refused does not keep the others.
pub(in crate::cli) async fn drop(
    servers: &Servers,
    settings: &Settings,
    id: &DropId,
    (to, remove): (PathBuf, bool),
) -> Result<(), Failure> {
    let drop = servers.rows.sales.drop_of(id).await?;
    let drop = drop.ok_or_else(|| Failure::Failed(format!("there is no drop {id}; see seckill drop list")))?;
    let (actor, mut failed) = (context::operator(), 0);
    for id in drop.sale_ids {
        if servers.rows.archived.get(&id).await?.is_some() && servers.rows.sales.get(&id).await?.is_none() {
            output::line(&format!("{id} was archived before"));
            continue;
        }
        let args = ArchiveArgs { id, to: to.clone(), remove };
        if let Err(failure) = run(servers.reconcile_context(settings), &actor, &args).await {
            failed += 1;
            output::complain(&format!("{}: {failure}", args.id));
        }
    }
    let left = format!("{failed} of the sales were not archived; repeat it, which does nothing to the others");
    if failed == 0 { Ok(()) } else { Err(Failure::Failed(left)) }
}

async fn exported(archive: &Archive) -> Result<String, ArchiveError> {
    let (manifest, hash) = archive.export().await?;
    let SaleSums { sale_id, orders_count, ordered, outcomes_count, .. } = manifest.sums;
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
            let folder = archive.folder().display();
            Ok(format!("the rows are gone from the database, but for those of payments; the export is in {folder}"))
        }
        Removed::Stopped => Ok("not all rows are gone; repeat the command".to_owned()),
    }
}
