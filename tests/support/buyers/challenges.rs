//! Buyers who ask for the purchase token of a sale with a challenge.

use crate::support::world::{Answer, World};
use reqwest::Method;
use seckill::domain::challenge::Challenge;
use seckill::domain::ids::SaleId;
use serde_json::Value;
use sha2::{Digest, Sha256};

/// Zero bits that the hash of a text begins with, counted bit by bit.
pub fn zero_bits(text: &str) -> usize {
    let hash = Sha256::digest(text.as_bytes());
    let bits = hash.iter().flat_map(|byte| (0..8).rev().map(move |at| (byte >> at) & 1));
    bits.take_while(|bit| *bit == 0).count()
}

/// The text that solves a nonce, by the first digits for which `fits` holds of its zero bits.
pub fn digits_behind(nonce: &str, fits: impl Fn(usize) -> bool) -> String {
    (0_u64..).map(|n| format!("{nonce}:{n}")).find(|text| fits(zero_bits(text))).expect("digits")
}

/// The solution of the challenge in a refusal.
pub fn solution(refusal: &Answer) -> String {
    let challenge = &refusal.json["challenge"];
    let bits = challenge["bits"].as_u64().expect("bits");
    digits_behind(challenge["nonce"].as_str().expect("a nonce"), |found| found as u64 >= bits)
}

impl World {
    /// A sale with this challenge, warmed.
    pub async fn challenged(&self, id: &str, challenge: &str) -> SaleId {
        let challenge = Challenge::asked(challenge).expect("a challenge");
        self.sale_with(id, 100, |sale| sale.challenge = Some(challenge)).await
    }

    /// Asks for a purchase token with these headers.
    pub async fn call_for_token(&self, sale: &SaleId, buyer: &str, headers: &[(&str, &str)]) -> Answer {
        let request = self.request(Method::POST, &format!("/v1/sales/{sale}/tokens"), buyer);
        Answer::of(headers.iter().fold(request, |request, (name, value)| request.header(*name, *value))).await
    }

    /// The same with this solution.
    pub async fn ask_with(&self, sale: &SaleId, buyer: &str, solution: &str) -> Answer {
        self.call_for_token(sale, buyer, &[("Seckill-Solution", solution)]).await
    }
}

/// Fails unless a call was refused with a challenge of this number of bits, and these words; returns it.
pub fn is_challenged(answer: Answer, bits: u8, said: &str) -> Answer {
    assert_eq!((answer.status, answer.code().as_str()), (428, "P1-Q4"), "{answer:?}");
    assert!(answer.text("detail").contains(said), "{said}: {answer:?}");
    let challenge = &answer.json["challenge"];
    assert_eq!((&challenge["algorithm"], &challenge["bits"]), (&Value::from("sha-256"), &Value::from(bits)));
    answer
}
