//! A buyer to forget, as an operator says it: the same for the admin API and the command line.

use super::block::{buyer, reason};
use crate::domain::ids::UserId;
use crate::http::bad_form::BadForm;
use serde::Deserialize;

/// A buyer whose id is to become a pseudonym.
#[derive(Debug, Clone, Deserialize, clap::Args, utoipa::ToSchema)]
#[schema(as = ForgetBody)]
#[serde(deny_unknown_fields)]
pub(crate) struct ForgetForm {
    /// The buyer: the `sub` of the access tokens.
    #[schema(min_length = 1, max_length = 64)]
    #[arg(value_name = "BUYER", help = "The buyer: the sub of the access tokens")]
    buyer: String,
    /// Why, for the record.
    #[schema(min_length = 1, max_length = 200)]
    #[arg(long, help = "Why, for the record")]
    reason: String,
}

/// A checked form.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct NewForgetting {
    pub(crate) buyer: UserId,
    /// In the operator's words, 1 to 200 characters.
    pub(crate) reason: String,
}

impl ForgetForm {
    /// The buyer who is to be forgotten.
    ///
    /// # Errors
    /// Which field cannot be used.
    pub(crate) fn checked(&self) -> Result<NewForgetting, BadForm> {
        Ok(NewForgetting { buyer: buyer(&self.buyer)?, reason: reason(&self.reason)? })
    }
}
