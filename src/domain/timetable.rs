//! The timetable of a sale: units that come while it sells, the sale that gets what is unsold at its end, and when its line closes.

use super::ids::SaleId;
use super::line::LinePlan;

/// Most releases of a sale.
pub const RELEASES_MAX: usize = 32;

/// Units that a sale gets at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Release {
    /// Unix milliseconds.
    pub at_ms: i64,
    /// How many, 1 or more.
    pub units: u32,
}

/// What happens to the stock of a sale by itself.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Timetable {
    /// In the order of their times, 0 to [`RELEASES_MAX`]; the first one has the number 1.
    pub releases: Vec<Release>,
    /// The sale of the same drop that gets what is unsold at the end.
    pub rollover_to: Option<SaleId>,
    /// Its line; none: the first clicks get its units.
    pub line: Option<LinePlan>,
}
