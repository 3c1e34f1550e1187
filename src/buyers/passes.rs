//! Signs passes (HS256) with the first secret of `passes.secrets`. The api processes check them with any of these.
//!
//! Input: what a pass says. Output: its text. Asks no server and keeps nothing: a pass that was issued is good until its time is over,
//! or until its secret is none of the settings any more.

use super::forms::{NewPass, PassOf};
use crate::config::Passes;
use crate::jwt;
use jsonwebtoken::{Algorithm, EncodingKey, Header, encode};
use serde::Serialize;

/// Why there is no pass.
#[derive(Debug, thiserror::Error)]
pub(crate) enum PassError {
    /// There is nothing to sign with.
    #[error("passes.secrets is empty: give the secrets that the api processes have, the first one signs")]
    NoSecret,
    /// The library refused.
    #[error("cannot sign a pass: {0}")]
    Sign(#[from] jsonwebtoken::errors::Error),
}

/// A pass that was just issued.
#[derive(Debug, Serialize, utoipa::ToSchema)]
pub(crate) struct IssuedPass {
    /// The buyer.
    sub: String,
    /// The sale that it is for, else `drop`.
    #[serde(skip_serializing_if = "Option::is_none")]
    sale: Option<String>,
    /// The drop that it is for.
    #[serde(skip_serializing_if = "Option::is_none")]
    drop: Option<String>,
    /// The end of its time, Unix seconds.
    exp: i64,
    /// Its own id.
    jti: String,
    /// Send it as Seckill-Pass.
    pass: String,
}

/// Signs passes with one secret.
pub(crate) struct PassIssuer {
    key: EncodingKey,
    header: Header,
}

impl PassIssuer {
    /// With the first secret of the settings.
    ///
    /// # Errors
    /// [`PassError::NoSecret`].
    pub(crate) fn new(passes: &Passes) -> Result<Self, PassError> {
        let secret = passes.signing_secret().ok_or(PassError::NoSecret)?;
        jwt::install();
        let key = EncodingKey::from_secret(secret.expose().as_bytes());
        Ok(Self { key, header: Header::new(Algorithm::HS256) })
    }

    /// Signs one.
    ///
    /// # Errors
    /// [`PassError::Sign`], which no pass that was checked causes.
    pub(crate) fn issue(&self, new: &NewPass) -> Result<IssuedPass, PassError> {
        let pass = encode(&self.header, new, &self.key)?;
        let (sale, drop) = match &new.of {
            PassOf::Sale(sale) => (Some(sale.to_string()), None),
            PassOf::Drop(drop) => (None, Some(drop.to_string())),
        };
        Ok(IssuedPass { sub: new.sub.to_string(), sale, drop, exp: new.exp, jti: new.jti.clone(), pass })
    }
}

/// An id for a pass that was given none.
pub(crate) fn new_jti() -> String {
    format!("{:032x}", rand::random::<u128>())
}
