//! Query strings of buyers' calls.
//!
//! Input: a query string, and what it may have. Output: its values, or a problem that says what cannot be used.

use crate::http::problem::{Kind, Problem};
use actix_web::error::QueryPayloadError;
use actix_web::web;
use serde::de::DeserializeOwned;
use std::fmt::Display;

/// Longest part of a query that a problem shows, characters.
const SHOWN_MAX: usize = 80;

/// The values of a query string. `expected`: all that it may have.
pub(super) fn read_query<T: DeserializeOwned>(query: &str, expected: &str) -> Result<T, Problem> {
    let read = web::Query::<T>::from_query(query);
    read.map(web::Query::into_inner).map_err(|error| match &error {
        QueryPayloadError::Deserialize(why) => bad_query(query, why, expected),
        other => bad_query(query, other, expected),
    })
}

/// The problem of a query string that cannot be used.
pub(super) fn bad_query(query: &str, error: &dyn Display, expected: &str) -> Problem {
    let shown: String = query.chars().take(SHOWN_MAX).collect();
    let english = format!("query {shown:?}: {error}; expected {expected}");
    Kind::BadRequest.because_both(english, format!("查询参数 {shown:?} 不符合要求：{error}；应为 {expected}"))
}
