//! The machine that the doctor runs on: what an api role there would be allowed.

use super::check::{CheckVerdict, DoctorCheck};
use crate::config::Http;
use crate::http::public_port::accept_queue_max;

/// Whether the system lets as many connections wait as the settings say. Nothing where it does not say.
pub(super) fn accept_queue(settings: &Http) -> Option<DoctorCheck> {
    let (allowed, wanted) = (accept_queue_max()?, settings.listen_backlog);
    let check = DoctorCheck::new("machine", "net.core.somaxconn", allowed.to_string(), format!("{wanted} or more"));
    Some(check.judged(
        allowed >= u32::from(wanted),
        CheckVerdict::Warning,
        "when a sale starts, connections beyond it are dropped and come again after a second or three",
        &format!("sysctl net.core.somaxconn={wanted}, where the api role runs"),
    ))
}
