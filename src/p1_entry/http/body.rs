//! Bodies: bounded in size and time, and parsed strictly — an unknown or repeated field is a mistake to report, not to guess
//! about. By hand, because `web::Json` has no bound in time and reads an array as an object.
//!
//! A body that is not read costs the client its connection: actix closes it after the answer. So a small one is read away
//! before a request is refused.

use super::state::{PublicApi, RequestBounds};
use crate::domain::policy::Quantity;
use crate::http::problem::{Kind, Problem};
use actix_web::HttpMessage;
use actix_web::body::MessageBody;
use actix_web::dev::{ServiceRequest, ServiceResponse};
use actix_web::error::PayloadError;
use actix_web::http::header::HeaderMap;
use actix_web::middleware::Next;
use actix_web::web::{Bytes, BytesMut, Data};
use futures::{Stream, StreamExt, poll};
use serde::{Deserialize, Deserializer};
use serde_json::Value;
use std::future::poll_fn;
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

/// Reads a whole body.
pub(super) async fn read(
    bounds: &RequestBounds,
    declared: Option<usize>,
    payload: &mut (impl Stream<Item = Result<Bytes, PayloadError>> + Unpin),
) -> Result<BytesMut, Problem> {
    let max = bounds.body_bytes_max;
    let too_large = || Kind::BodyTooLarge.because(format!("the body has more than {max} bytes"));
    if declared.is_some_and(|length| length > max) {
        return Err(too_large());
    }
    let reading = async {
        let mut body = BytesMut::with_capacity(declared.unwrap_or(64).min(max));
        while let Some(chunk) = payload.next().await {
            let chunk =
                chunk.map_err(|error| Kind::BadRequest.because(format!("the body did not arrive whole: {error}")))?;
            if body.len() + chunk.len() > max {
                return Err(too_large());
            }
            body.extend_from_slice(&chunk);
        }
        Ok(body)
    };
    in_time(bounds.body_timeout, reading).await.unwrap_or_else(|| {
        Err(Kind::RequestTimeout
            .because(format!("the body did not arrive within {} ms", bounds.body_timeout.as_millis())))
    })
}

/// Reads a small body away, so that the connection outlives a refusal. A large or slow one is left, and closes it.
pub(super) async fn discard(
    bounds: &RequestBounds,
    declared: Option<usize>,
    payload: &mut (impl Stream<Item = Result<Bytes, PayloadError>> + Unpin),
) {
    let mut left = bounds.body_bytes_max;
    if declared.is_some_and(|length| length > left) {
        return;
    }
    let discarding = async {
        while let Some(Ok(chunk)) = payload.next().await {
            let Some(rest) = left.checked_sub(chunk.len()) else { return };
            left = rest;
        }
    };
    // Late or not, the refusal is the answer.
    let _in_time: Option<()> = in_time(bounds.body_timeout, discarding).await;
}

/// Middleware of routes that take no body: one that is sent is read away.
pub(super) async fn ignored(
    mut request: ServiceRequest,
    next: Next<impl MessageBody>,
) -> actix_web::Result<ServiceResponse<impl MessageBody>> {
    if let Some(public) = request.app_data::<Data<PublicApi>>().cloned() {
        let (declared, mut payload) = (declared_length(request.headers()), request.take_payload());
        discard(&public.bounds, declared, &mut payload).await;
    }
    next.call(request).await
}

/// The length that a head gives, if it does.
pub(super) fn declared_length(headers: &HeaderMap) -> Option<usize> {
    headers.get("content-length")?.to_str().ok()?.parse().ok()
}

/// What `reading` comes to; none when it takes longer than `limit`.
///
/// A small body has nearly always come with its head, but actix asks a handler before it hands over the body. So the timer is
/// set when the second question has no answer either.
async fn in_time<T>(limit: Duration, reading: impl Future<Output = T>) -> Option<T> {
    let mut reading = pin!(reading);
    for _ in 0..2 {
        if let Poll::Ready(read) = poll!(&mut reading) {
            return Some(read);
        }
        asked_again().await;
    }
    tokio::time::timeout(limit, reading).await.ok()
}

/// Ready when its task is asked the next time, which it sees to itself.
async fn asked_again() {
    let mut asked = false;
    poll_fn(|context| {
        if std::mem::replace(&mut asked, true) {
            return Poll::Ready(());
        }
        context.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct BuyBody {
    #[serde(default, deserialize_with = "present")]
    quantity: Option<Value>,
}

/// Distinguishes `"quantity": null` from no quantity at all.
fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(deserializer).map(Some)
}

/// The quantity of a purchase; 1 when the object does not say.
pub(super) fn quantity(body: &[u8], max: u32) -> Result<Quantity, Problem> {
    // A derived struct would also read `[1]`.
    if body.iter().find(|byte| !byte.is_ascii_whitespace()) != Some(&b'{') {
        return Err(Kind::BadRequest.because("the body is not a JSON object, expected {} or {\"quantity\": n}"));
    }
    let body: BuyBody = serde_json::from_slice(body)
        .map_err(|error| Kind::BadRequest.because(format!("the body is not as expected: {error}")))?;
    let Some(value) = body.quantity else { return Ok(Quantity::ONE) };
    value
        .as_u64()
        .and_then(|units| u32::try_from(units).ok())
        .filter(|units| *units <= max)
        .and_then(Quantity::new)
        .ok_or_else(|| {
            Kind::Unprocessable.because(format!("quantity is {value}, expected a whole number from 1 to {max}"))
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A runtime without timers: setting one panics.
    #[test]
    fn a_body_that_is_there_when_asked_again_sets_no_timer() {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let reading = async {
            asked_again().await;
            7
        };
        assert_eq!(runtime.block_on(in_time(Duration::from_secs(1), reading)), Some(7));
    }

    #[test]
    fn a_body_that_never_comes_is_given_up() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        let never = std::future::pending::<()>();
        assert_eq!(runtime.block_on(in_time(Duration::from_millis(20), never)), None);
    }

    fn status(body: &str) -> u16 {
        quantity(body.as_bytes(), 1000).err().map_or(200, |problem| problem.kind().status())
    }

    #[test]
    fn only_a_whole_number_in_range_is_a_quantity() {
        assert_eq!(quantity(b"{}", 5).unwrap(), Quantity::ONE);
        assert_eq!(quantity(b" {\"quantity\": 5} ", 5).unwrap().get(), 5);
        for (body, expected) in [
            (r#"{"quantity":0}"#, 422),
            (r#"{"quantity":-1}"#, 422),
            (r#"{"quantity":1001}"#, 422),
            (r#"{"quantity":9223372036854775808}"#, 422),
            (r#"{"quantity":99999999999999999999999}"#, 422),
            (r#"{"quantity":1.5}"#, 422),
            (r#"{"quantity":1.0}"#, 422),
            (r#"{"quantity":1e2}"#, 422),
            (r#"{"quantity":"1"}"#, 422),
            (r#"{"quantity":null}"#, 422),
            (r#"{"quantity":true}"#, 422),
            (r#"{"quantity":[1]}"#, 422),
            (r#"{"quantity":1,"quantity":1}"#, 400),
            (r#"{"quantity":1,"price":0}"#, 400),
            (r#"{"Quantity":1}"#, 400),
            (r#"{"quantity":1}x"#, 400),
            (r#"{"quantity":01}"#, 400),
            ("", 400),
            ("[1]", 400),
            ("null", 400),
            ("1", 400),
            ("{", 400),
            ("\u{feff}{}", 400),
        ] {
            assert_eq!(status(body), expected, "{body}");
        }
    }
}
