//! What is measured together: the stages of a benchmark, in their order.

use super::sizes::Scenario;

/// Things measured together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stage {
    Accept,
    AcceptRs256,
    SoldOut,
    Waiters,
    Latency,
    Filled,
    EndToEnd,
    Resident,
    Sale,
    Crowd,
    Rush,
    Recovery,
    Growth,
    GrowthReconcile,
    GrowthSalesIdle,
    DropCost,
    Line,
    Expiry,
    IndexCost,
    Strategies,
}

impl Stage {
    pub const ALL: [Self; 20] = [
        Self::Accept,
        Self::AcceptRs256,
        Self::SoldOut,
        Self::Waiters,
        Self::Latency,
        Self::Filled,
        Self::EndToEnd,
        Self::Resident,
        Self::Sale,
        Self::Crowd,
        Self::Rush,
        Self::Recovery,
        Self::Growth,
        Self::GrowthReconcile,
        Self::GrowthSalesIdle,
        Self::DropCost,
        Self::Line,
        Self::Expiry,
        Self::IndexCost,
        Self::Strategies,
    ];

    /// The scenarios that need it.
    pub const fn for_any_of(self) -> &'static [Scenario] {
        match self {
            // end_to_end and latency are measured against it.
            Self::Accept => &[Scenario::Accept, Scenario::EndToEnd, Scenario::Latency],
            Self::AcceptRs256 => &[Scenario::AcceptRs256],
            Self::SoldOut => &[Scenario::SoldOut, Scenario::Replay, Scenario::Poll],
            Self::Waiters => &[Scenario::Waiters],
            Self::Latency => &[Scenario::Latency],
            Self::Filled => &[Scenario::Relay, Scenario::Landing, Scenario::Memory],
            Self::EndToEnd => &[Scenario::EndToEnd],
            Self::Resident => &[Scenario::Memory],
            Self::Sale => &[Scenario::Sale],
            Self::Crowd => &[Scenario::Crowd],
            Self::Rush => &[Scenario::Rush],
            Self::Recovery => &[Scenario::Recovery],
            Self::Growth => &[Scenario::Growth],
            Self::GrowthReconcile => &[Scenario::GrowthReconcile],
            Self::GrowthSalesIdle => &[Scenario::GrowthSalesIdle],
            Self::DropCost => &[Scenario::CostDrop],
            Self::Line => &[Scenario::Line],
            Self::Expiry => &[Scenario::Expiry],
            Self::IndexCost => &[Scenario::IndexCost],
            Self::Strategies => &[Scenario::Strategies],
        }
    }

    /// A peak of memory is one for the whole life of a process, a whole sale is exact or not, filling a sale with millions
    /// of orders takes minutes, sales in which nothing happens are counted for half a minute each time, and what an index costs is
    /// measured in rounds anyway: once is enough.
    pub const fn is_repeated(self) -> bool {
        match self {
            Self::Resident | Self::Sale | Self::GrowthReconcile | Self::GrowthSalesIdle | Self::IndexCost => false,
            Self::Accept
            | Self::AcceptRs256
            | Self::SoldOut
            | Self::Waiters
            | Self::Latency
            | Self::Filled
            | Self::EndToEnd
            | Self::Crowd
            | Self::Rush
            | Self::Recovery
            | Self::Growth
            | Self::DropCost
            | Self::Line
            | Self::Expiry
            | Self::Strategies => true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_scenario_has_a_stage() {
        for scenario in Scenario::ALL {
            assert!(Stage::ALL.iter().any(|stage| stage.for_any_of().contains(&scenario)), "{scenario:?}");
        }
    }
}
