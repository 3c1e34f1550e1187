//! Bodies: bounded in size and time, and parsed strictly — an unknown or repeated field is a mistake to report, not to guess
//! about. By hand, because `web::Json` has no bound in time and reads an array as an object.

use super::state::PublicApi;
use crate::domain::policy::Quantity;
use crate::http::problem::{Kind, Problem};
use actix_web::web::{BytesMut, Payload};
use futures::{StreamExt, poll};
use serde::{Deserialize, Deserializer};
use serde_json::Value;
use std::pin::pin;
use std::task::Poll;

/// Reads a whole body.
pub(super) async fn read(
    public: &PublicApi,
    declared: Option<usize>,
    mut payload: Payload,
) -> Result<BytesMut, Problem> {
    let max = public.bounds.body_bytes_max;
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
    let mut reading = pin!(reading);
    // A small body has nearly always come with its head: then there is nothing to set a timer for.
    if let Poll::Ready(body) = poll!(&mut reading) {
        return body;
    }
    tokio::time::timeout(public.bounds.body_timeout, reading).await.unwrap_or_else(|_| {
        Err(Kind::RequestTimeout
            .because(format!("the body did not arrive within {} ms", public.bounds.body_timeout.as_millis())))
    })
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct BuyBody {
    #[serde(default, deserialize_with = "present")]
    quantity: Option<Value>,
}

/// Tells `"quantity": null` from no quantity at all.
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
