//! Units that leave a sale, or move to another one of its drop.

use crate::domain::grant_names::{ROLLOVER, WITHDRAWAL_NAME_BYTES_MAX};
use crate::domain::ids::SaleId;
use crate::http::bad_form::{BadForm, bad};
use serde::{Deserialize, Serialize};

/// Unsold units that leave a sale.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[schema(as = WithdrawBody)]
#[serde(deny_unknown_fields)]
pub(crate) struct WithdrawForm {
    /// Most units that leave; fewer do when fewer are unsold.
    #[schema(minimum = 1)]
    pub(crate) units: u32,
    /// Name of this withdrawal, at most 55 bytes of UTF-8: a repeated call with the same name takes nothing more.
    #[schema(min_length = 1, max_length = 55)]
    pub(crate) name: String,
}

/// Unsold units that leave one sale of a drop for another.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[schema(as = MoveBody)]
#[serde(deny_unknown_fields)]
pub(crate) struct MoveForm {
    /// The sale that they leave.
    #[schema(value_type = String)]
    pub(crate) from: SaleId,
    /// The sale that gets them.
    #[schema(value_type = String)]
    pub(crate) to: SaleId,
    /// Most units that move; fewer do when fewer are unsold.
    #[schema(minimum = 1)]
    pub(crate) units: u32,
    /// Name of this move, at most 55 bytes of UTF-8: a repeated call with the same name moves nothing more.
    #[schema(min_length = 1, max_length = 55)]
    pub(crate) name: String,
}

/// Whether a withdrawal may have this name.
///
/// # Errors
/// What would be accepted.
pub(crate) fn name_is_usable(name: &str) -> Result<(), BadForm> {
    match name.len() {
        _ if name.starts_with(ROLLOVER) => bad(
            "name",
            "a name that the system does not give itself, so not rollover-…",
            "系统不使用的名称，即不以 rollover- 开头",
        ),
        1..=WITHDRAWAL_NAME_BYTES_MAX if !name.trim().is_empty() => Ok(()),
        _ => bad("name", "1 to 55 bytes of UTF-8, not only spaces", " 1 至 55 字节的 UTF-8，且不全是空格"),
    }
}

fn units_are_usable(units: u32) -> Result<(), BadForm> {
    if units == 0 { bad("units", "a whole number from 1", "从 1 起的整数") } else { Ok(()) }
}

impl WithdrawForm {
    /// # Errors
    /// Which field cannot be used.
    pub(crate) fn check(&self) -> Result<(), BadForm> {
        units_are_usable(self.units)?;
        name_is_usable(&self.name)
    }
}

impl MoveForm {
    /// # Errors
    /// Which field cannot be used.
    pub(crate) fn check(&self) -> Result<(), BadForm> {
        if self.from == self.to {
            return bad("to", "another sale than from", "与 from 不同的活动");
        }
        units_are_usable(self.units)?;
        name_is_usable(&self.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_done_names_its_field() {
        let id = |id: &str| SaleId::parse(id).unwrap();
        let form = |units, name: &str| WithdrawForm { units, name: name.to_owned() }.check();
        for name in ["n", &"n".repeat(55)] {
            assert_eq!(form(1, name), Ok(()));
        }
        assert_eq!(form(0, "n").unwrap_err().field, "units");
        for name in ["", "  ", &"n".repeat(56), "rollover-1"] {
            assert_eq!(form(1, name).unwrap_err().field, "name", "{name:?}");
        }
        let between = |to: &str| MoveForm { from: id("a"), to: id(to), units: 1, name: "n".to_owned() }.check();
        assert_eq!(between("b"), Ok(()));
        assert_eq!(between("a").unwrap_err().field, "to");
    }
}
