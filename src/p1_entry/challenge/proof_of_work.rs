//! Proof of work: a nonce, and a text that begins with it and whose SHA-256 begins with zero bits.
//!
//! Input: a sale's bits, a buyer, perhaps a solution. Output: nothing when it is right, else the refusal with a fresh nonce. The nonce
//! is signed, and names its buyer, its sale, its bits and its end, so that nothing is stored. So a solution counts again until the
//! nonce ends, for the same buyer and sale: what that gives is bounded by the buyer's rate, as without a challenge.
//! A check costs a hash, and an HMAC for each key.

use crate::config::Secret;
use crate::domain::ids::{SaleId, UserId};
use crate::domain::states::{P1Entry, State};
use crate::http::new_challenge::NewChallenge;
use crate::http::problem::{Kind, Problem};
use crate::http::times::shown_time;
use crate::p1_entry::signed::{SIGNED_BYTES_MAX, Signer};
use crate::telemetry::count;
use metrics::Counter;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

/// Keeps nonces apart from purchase tokens and tickets, which the same keys sign.
const AUDIENCE: &str = "seckill-challenge";
/// A nonce ends after this time, seconds. Who has found nothing by then begins anew and has lost nothing: each try is as good as any.
const TTL_S: i64 = 120;
/// Most digits behind the nonce: a number of 64 bits.
const DIGITS_MAX: usize = 20;

#[derive(Clone, Serialize, Deserialize)]
struct NonceClaims {
    aud: String,
    sub: UserId,
    sale: SaleId,
    bits: u8,
    exp: i64,
}

/// Why a solution does not count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SolutionFault {
    /// There is none.
    Missing,
    /// It is no nonce with digits behind it.
    Malformed,
    /// Its hash begins with this many zero bits only.
    TooFew(u32),
    /// We did not sign the nonce.
    NotOurs,
    OtherBuyer,
    OtherSale,
    /// The sale asks for another number of bits than when the nonce was made.
    OtherBits,
    Expired,
}

impl SolutionFault {
    /// Label of the metric.
    const fn label(self) -> &'static str {
        match self {
            Self::Missing => "asked",
            Self::Malformed | Self::TooFew(_) => "wrong",
            Self::NotOurs | Self::OtherBuyer | Self::OtherSale | Self::OtherBits => "foreign",
            Self::Expired => "expired",
        }
    }

    /// In English and in Chinese.
    fn words(self, bits: u8) -> [String; 2] {
        match self {
            Self::Missing => [
                format!(
                    "send as Seckill-Solution the nonce, a colon and 1 to {DIGITS_MAX} digits, so that the SHA-256 of that text \
                     begins with {bits} zero bits"
                ),
                format!(
                    "请求头 Seckill-Solution 为 nonce、冒号和 1 至 {DIGITS_MAX} 位数字，使该文本的 SHA-256 以 {bits} 个零位开头"
                ),
            ],
            Self::Malformed => [
                format!("Seckill-Solution is malformed, expected the nonce, a colon and 1 to {DIGITS_MAX} digits"),
                format!("Seckill-Solution 格式错误，应为 nonce、冒号和 1 至 {DIGITS_MAX} 位数字"),
            ],
            Self::TooFew(found) => [
                format!("the SHA-256 of Seckill-Solution begins with {found} zero bits, {bits} are needed"),
                format!("Seckill-Solution 的 SHA-256 以 {found} 个零位开头，需要 {bits} 个"),
            ],
            Self::NotOurs => [
                "the nonce in Seckill-Solution was not made here, or was changed".to_owned(),
                "Seckill-Solution 中的 nonce 并非由本服务签发，或已被改动".to_owned(),
            ],
            Self::OtherBuyer => ["the nonce is another buyer's".to_owned(), "该 nonce 属于另一买家".to_owned()],
            Self::OtherSale => ["the nonce is for another sale".to_owned(), "该 nonce 属于另一活动".to_owned()],
            Self::OtherBits => [
                format!("the nonce is for another number of zero bits than the {bits} of the sale"),
                format!("该 nonce 的零位数与活动要求的 {bits} 不同"),
            ],
            Self::Expired => {
                ["the nonce has expired, solve the new one".to_owned(), "nonce 已过期，请解新的一个".to_owned()]
            }
        }
    }
}

/// Puts proofs of work to buyers.
pub(super) struct ProofOfWork {
    signer: Signer,
    solved: Counter,
}

impl ProofOfWork {
    /// The first of `secrets` signs nonces, all of them verify.
    pub(super) fn new(secrets: &[Secret]) -> Self {
        for fault in [SolutionFault::Missing, SolutionFault::Malformed, SolutionFault::NotOurs, SolutionFault::Expired]
        {
            counter(fault.label()).increment(0);
        }
        let solved = counter("solved");
        solved.increment(0);
        Self { signer: Signer::new(secrets, AUDIENCE), solved }
    }

    /// Why there is no token yet, with a fresh nonce; none when the solution is right.
    pub(super) fn refusal(
        &self,
        bits: u8,
        (buyer, sale): (&UserId, &SaleId),
        solution: Option<&str>,
        now_ms: i64,
    ) -> Option<Problem> {
        let now_s = now_ms / 1000;
        let fault = match solution {
            Some(text) => self.check(bits, (buyer, sale), text, now_s).err(),
            None => Some(SolutionFault::Missing),
        };
        let Some(fault) = fault else {
            self.solved.increment(1);
            return None;
        };
        counter(fault.label()).increment(1);
        count(State::P1(P1Entry::Challenge), 1);
        let [english, chinese] = fault.words(bits);
        let problem = Kind::Challenge.because_both(english, chinese);
        Some(match self.nonce(bits, (buyer, sale), now_s) {
            Some(challenge) => problem.challenge(challenge),
            None => Kind::Internal.into(),
        })
    }

    fn nonce(&self, bits: u8, (buyer, sale): (&UserId, &SaleId), now_s: i64) -> Option<NewChallenge> {
        let exp = now_s + TTL_S;
        let claims = NonceClaims { aud: AUDIENCE.to_owned(), sub: buyer.clone(), sale: sale.clone(), bits, exp };
        let nonce = self.signer.sign(&claims)?;
        Some(NewChallenge { algorithm: "sha-256", nonce, bits, expires_at: shown_time(exp * 1000) })
    }

    /// The hash first: it costs less than the signature.
    fn check(
        &self,
        bits: u8,
        (buyer, sale): (&UserId, &SaleId),
        solution: &str,
        now_s: i64,
    ) -> Result<(), SolutionFault> {
        let (nonce, digits) = solution.rsplit_once(':').ok_or(SolutionFault::Malformed)?;
        let are_digits = (1..=DIGITS_MAX).contains(&digits.len()) && digits.bytes().all(|byte| byte.is_ascii_digit());
        if !are_digits || nonce.len() > SIGNED_BYTES_MAX {
            return Err(SolutionFault::Malformed);
        }
        let found = zero_bits(&Sha256::digest(solution.as_bytes()));
        if found < u32::from(bits) {
            return Err(SolutionFault::TooFew(found));
        }
        let claims: NonceClaims = self.signer.read(nonce).ok_or(SolutionFault::NotOurs)?;
        match () {
            () if claims.sub != *buyer => Err(SolutionFault::OtherBuyer),
            () if claims.sale != *sale => Err(SolutionFault::OtherSale),
            () if claims.exp <= now_s => Err(SolutionFault::Expired),
            () if claims.bits != bits => Err(SolutionFault::OtherBits),
            () => Ok(()),
        }
    }
}

fn counter(result: &'static str) -> Counter {
    metrics::counter!("seckill_p1_entry_challenges_total", "result" => result)
}

/// Zero bits that a hash begins with.
fn zero_bits(hash: &[u8]) -> u32 {
    let zero_bytes = hash.iter().take_while(|byte| **byte == 0).count();
    let first = hash.get(zero_bytes).map_or(0, |byte| byte.leading_zeros());
    u32::try_from(zero_bytes * 8).unwrap_or(u32::MAX) + first
}

#[cfg(test)]
mod tests {
    use super::*;

    fn work(key: &str) -> ProofOfWork {
        ProofOfWork::new(&[Secret::new(key.repeat(32))])
    }

    fn ids() -> (UserId, SaleId) {
        (UserId::parse("alice").unwrap(), SaleId::parse("s").unwrap())
    }

    fn solved(nonce: &str, bits: u32) -> String {
        let mut tries = (0_u64..).map(|n| format!("{nonce}:{n}"));
        tries.find(|text| zero_bits(&Sha256::digest(text.as_bytes())) >= bits).unwrap()
    }

    #[test]
    fn a_solution_is_good_for_its_buyer_its_sale_its_bits_and_its_time_only() {
        let (other, work, (alice, sale)) = (work("x"), work("k"), ids());
        let new = work.nonce(8, (&alice, &sale), 1_000).unwrap();
        assert_eq!((new.algorithm, new.bits, new.expires_at.as_str()), ("sha-256", 8, "1970-01-01T00:18:40.000Z"));
        let text = solved(&new.nonce, 8);
        let check = |bits, buyer: &str, of: &str, now_s| {
            let (buyer, of) = (UserId::parse(buyer).unwrap(), SaleId::parse(of).unwrap());
            work.check(bits, (&buyer, &of), &text, now_s)
        };
        assert_eq!(check(8, "alice", "s", 1_000), Ok(()));
        assert_eq!(check(8, "alice", "s", 1_119), Ok(()), "and again, until it ends");
        assert_eq!(check(8, "alice", "s", 1_120), Err(SolutionFault::Expired));
        assert_eq!(check(8, "Alice", "s", 1_000), Err(SolutionFault::OtherBuyer));
        assert_eq!(check(8, "alice", "S", 1_000), Err(SolutionFault::OtherSale));
        assert_eq!(check(7, "alice", "s", 1_000), Err(SolutionFault::OtherBits));
        assert_eq!(other.check(8, (&alice, &sale), &text, 1_000), Err(SolutionFault::NotOurs));
    }

    #[test]
    fn what_is_no_solution_is_refused_with_a_nonce_to_solve() {
        let (work, (alice, sale)) = (work("k"), ids());
        let check = |text: &str| work.check(1, (&alice, &sale), text, 0);
        let long = format!("{}:1", "x".repeat(SIGNED_BYTES_MAX + 1));
        let many = format!("a:{}", "1".repeat(DIGITS_MAX + 1));
        for text in ["", "a", "a:", ":", "a:x", "a:-1", "a:1 ", "a: 1", &long, &many] {
            assert_eq!(check(text), Err(SolutionFault::Malformed), "{text}");
        }
        let wrong =
            (0..).map(|n| format!("a.b.c:{n}")).find(|text| check(text) != Err(SolutionFault::NotOurs)).unwrap();
        assert_eq!(check(&wrong), Err(SolutionFault::TooFew(0)));
        for text in [None, Some(wrong.as_str()), Some("a")] {
            let refusal = work.refusal(1, (&alice, &sale), text, 0).unwrap();
            assert_eq!(refusal.kind(), Kind::Challenge);
        }
        let right = solved(&work.nonce(1, (&alice, &sale), 0).unwrap().nonce, 1);
        assert!(work.refusal(1, (&alice, &sale), Some(&right), 0).is_none());
    }

    #[test]
    fn bits_are_counted_from_the_first() {
        assert_eq!(
            [zero_bits(&[0x80]), zero_bits(&[1, 0]), zero_bits(&[0, 0x10, 0]), zero_bits(&[0, 0])],
            [0, 7, 11, 16]
        );
    }
}
