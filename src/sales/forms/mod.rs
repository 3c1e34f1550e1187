//! What operators say about sales, and the rules for it. The command line and the admin API read the same ones.

mod challenge;
mod changes;
mod drop_edit;
mod import;
mod line;
mod needs;
mod new_drop;
mod new_sale;
mod payment_rules;
mod timetable;
mod units;

pub(crate) use challenge::ChallengeOrNone;
pub(crate) use changes::{CloneForm, OrNone, RescheduleForm, SaleEditForm};
pub(crate) use drop_edit::DropEditForm;
pub(crate) use import::{Import, ImportEntry, ImportProblem, Place};
pub(crate) use line::PlannedLine;
pub(crate) use new_drop::{BadDrop, NewDropForm};
pub(crate) use new_sale::{NewSaleForm, PAY_GRACE_S};
pub(crate) use timetable::{ReleaseForm, shown_releases};
pub(crate) use units::{MoveForm, WithdrawForm, name_is_usable};
