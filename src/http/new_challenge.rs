//! The challenge in a problem document: what a client solves, and how it sends the solution. Values only.

use serde::Serialize;

/// A proof of work that a buyer is asked for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, utoipa::ToSchema)]
#[schema(as = Challenge)]
pub(crate) struct NewChallenge {
    /// Always sha-256.
    #[schema(example = "sha-256")]
    pub algorithm: &'static str,
    /// Find decimal digits so that the hash of `nonce:digits` begins with `bits` zero bits; send that text as Seckill-Solution.
    pub nonce: String,
    /// Zero bits.
    #[schema(minimum = 1, maximum = 24, example = 18)]
    pub bits: u8,
    /// A solution counts until then, RFC 3339.
    #[schema(example = "2026-11-11T12:02:00Z")]
    pub expires_at: String,
}
