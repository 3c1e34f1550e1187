//! Tests of the problem documents: languages, types, headers.

use super::*;
use crate::domain::states::P1Entry;
use actix_web::body::MessageBody;

#[test]
fn the_detail_is_in_the_language_of_the_title_where_both_are_known() {
    let read = |problem: &Problem, language| {
        let body = problem.respond(language).into_body().try_into_bytes().unwrap();
        let document: serde_json::Value = serde_json::from_slice(&body).unwrap();
        document["detail"].as_str().unwrap().to_owned()
    };
    let both = Kind::Conflict.because_both("the order is PAID", "订单已付款");
    assert_eq!(
        (read(&both, Language::Chinese).as_str(), read(&both, Language::English).as_str()),
        ("订单已付款", "the order is PAID")
    );
    assert_eq!(read(&Kind::Conflict.because("only for programs"), Language::Chinese), "only for programs");
}

#[test]
fn each_kind_has_a_type_of_its_own_code() {
    assert_eq!(Kind::EntrySoldOut.urn(), format!("urn:seckill:problem:{}", P1Entry::SoldOut.code().to_lowercase()));
    for kind in Kind::ALL {
        assert!(kind.urn().ends_with(&kind.code().to_lowercase().replace('_', "-")), "{kind:?}");
    }
}

/// Every number of seconds that answers to a problem have.
fn retries(problem: &Problem) -> Vec<u64> {
    let seconds = |_| {
        let answer = problem.respond(Language::English);
        answer.headers().get("Retry-After").unwrap().to_str().unwrap().parse().unwrap()
    };
    let all: std::collections::BTreeSet<u64> = (0..500).map(seconds).collect();
    all.into_iter().collect()
}

#[test]
fn a_crowd_that_was_refused_is_spread_over_some_seconds() {
    assert_eq!(retries(&Kind::Overloaded.into()), [1, 2, 3]);
    assert_eq!(retries(&Kind::Unavailable.because("a server is away")), [1, 2, 3]);
    assert_eq!(retries(&Problem::from(Kind::Overloaded).retry_within_s(RETRY_LATER_S)), [5, 6, 7, 8, 9, 10]);
    assert_eq!(retries(&Problem::from(Kind::NotStarted).retry_after_s(40)), [40], "the start is one moment");
}

#[test]
fn no_cache_keeps_a_problem() {
    for kind in Kind::ALL {
        let answer = Problem::from(*kind).respond(Language::Chinese);
        let header = |name: &str| answer.headers().get(name).and_then(|value| value.to_str().ok());
        assert_eq!((header("Cache-Control"), header("Vary")), (Some("no-store"), Some("Accept-Language")), "{kind:?}");
    }
}

#[test]
fn problems_that_pass_say_when_to_retry() {
    for kind in Kind::ALL {
        let answer = Problem::from(*kind).respond(Language::English);
        let retry = answer.headers().contains_key("Retry-After");
        assert_eq!(retry, [423, 425, 429, 503, 504].contains(&kind.status()), "{kind:?}");
    }
}
