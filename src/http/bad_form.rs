//! What a caller sent that cannot be used: the field, and what would be accepted. The same for both APIs and the command line.

/// Which field cannot be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{field}: expected {expected}")]
pub(crate) struct BadForm {
    pub(crate) field: &'static str,
    /// What would be accepted.
    pub(crate) expected: &'static str,
    /// The same in Chinese.
    pub(crate) chinese: &'static str,
}

pub(crate) const fn bad<T>(field: &'static str, expected: &'static str, chinese: &'static str) -> Result<T, BadForm> {
    Err(BadForm { field, expected, chinese })
}
