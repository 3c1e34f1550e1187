//! The timetable of a new sale, and the rules for it.

use crate::domain::ids::SaleId;
use crate::domain::instant;
use crate::domain::sale::{STOCK_MAX, Sale};
use crate::domain::timetable::{RELEASES_MAX, Release, Timetable};
use crate::http::bad_form::{BadForm, bad};
use crate::http::times::shown_time;
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

/// Units that a sale gets at a time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[schema(as = Release)]
#[serde(deny_unknown_fields)]
pub(crate) struct ReleaseForm {
    /// RFC 3339, after the start of the sale and before its end.
    #[serde(deserialize_with = "instant::read", serialize_with = "shown")]
    #[schema(value_type = String, format = DateTime)]
    pub(crate) at: DateTime<Utc>,
    #[schema(minimum = 1, maximum = 1_000_000_000)]
    pub(crate) units: u32,
}

fn shown<S: serde::Serializer>(at: &DateTime<Utc>, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(&shown_time(at.timestamp_millis()))
}

/// Releases as a form would say them.
pub(crate) fn shown_releases(releases: &[Release]) -> Vec<ReleaseForm> {
    let at = |at_ms| DateTime::from_timestamp_millis(at_ms).unwrap_or_default();
    releases.iter().map(|release| ReleaseForm { at: at(release.at_ms), units: release.units }).collect()
}

/// The releases of a new sale with this stock and this window.
pub(super) fn planned_releases(
    releases: &[ReleaseForm],
    stock: i64,
    starts_at: DateTime<Utc>,
    ends_at: DateTime<Utc>,
) -> Result<Vec<Release>, BadForm> {
    let times: Vec<DateTime<Utc>> = releases.iter().map(|release| release.at).collect();
    let units: i64 = releases.iter().map(|release| i64::from(release.units)).sum();
    let inside = times.iter().all(|at| *at > starts_at && *at < ends_at);
    let rules = [
        (releases.len() <= RELEASES_MAX, "at most 32 of them", "至多 32 次"),
        (
            releases.iter().all(|release| release.units > 0),
            "units of 1 or more in each of them",
            "每次的 units 至少为 1",
        ),
        (inside, "times (at) after starts_at and before ends_at", "晚于 starts_at 且早于 ends_at 的时间（at）"),
        (times.is_sorted_by(|a, b| a < b), "each time (at) later than the one before", "逐次更晚的时间（at）"),
        (
            stock.saturating_add(units) <= STOCK_MAX,
            "at most 1,000,000,000 units, those of stock among them",
            "连同 stock 至多 1,000,000,000 件",
        ),
    ];
    if let Some((_, expected, chinese)) = rules.into_iter().find(|(holds, ..)| !holds) {
        return bad("releases", expected, chinese);
    }
    let release = |form: &ReleaseForm| Release { at_ms: form.at.timestamp_millis(), units: form.units };
    Ok(releases.iter().map(release).collect())
}

/// Whether what is unsold of each sale of a drop can go where it is to go; otherwise the first sale of which it cannot.
pub(super) fn rollovers_hold(sales: &[(Sale, Timetable)]) -> Result<(), (&SaleId, BadForm)> {
    for (sale, plan) in sales {
        let Some(to) = &plan.rollover_to else { continue };
        let target = sales.iter().map(|(sale, _)| sale).find(|other| other.sale_id == *to);
        if target.is_none_or(|target| target.ends_at_ms <= sale.ends_at_ms) {
            let (expected, chinese) = ("another sale of this drop, which ends later", "同一组合中结束更晚的另一个活动");
            return Err((&sale.sale_id, BadForm { field: "rollover_to", expected, chinese }));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// In a sale of 5 units from 10 to 12 o'clock.
    fn planned(releases: &str) -> Result<Vec<Release>, BadForm> {
        let [starts_at, ends_at] =
            ["10", "12"].map(|hour| instant::instant(&format!("2026-01-01T{hour}:00:00Z")).unwrap());
        planned_releases(&serde_json::from_str::<Vec<ReleaseForm>>(releases).unwrap(), 5, starts_at, ends_at)
    }

    fn at(times: &[(&str, u32)]) -> String {
        let one = |(at, units): &(&str, u32)| format!(r#"{{"at":"2026-01-01T{at}Z","units":{units}}}"#);
        format!("[{}]", times.iter().map(one).collect::<Vec<_>>().join(","))
    }

    #[test]
    fn releases_are_ascending_inside_the_window_and_few() {
        let two = planned(&at(&[("10:00:00.001", 1), ("11:59:59.999", 999_999_994)])).unwrap();
        assert_eq!(two.iter().map(|release| release.units).collect::<Vec<_>>(), [1, 999_999_994]);
        let many = |count: u32| at(&(0..count).map(|_| ("11:00:00", 1)).collect::<Vec<_>>());
        for (releases, said) in [
            (at(&[("11:00:00", 0)]), "units of 1 or more"),
            (at(&[("10:00:00", 1)]), "after starts_at"),
            (at(&[("12:00:00", 1)]), "before ends_at"),
            (at(&[("11:00:00", 1), ("11:00:00", 1)]), "each time"),
            (at(&[("11:30:00", 1), ("11:00:00", 1)]), "each time"),
            (at(&[("11:00:00", 999_999_996)]), "at most 1,000,000,000 units"),
            (many(33), "at most 32"),
        ] {
            let bad = planned(&releases).unwrap_err();
            assert!(bad.field == "releases" && bad.expected.contains(said), "{releases}: {bad:?}");
        }
    }
}
