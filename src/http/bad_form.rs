//! What a caller sent that cannot be used: the field, and what would be accepted. The same for both APIs and the command line.

/// Which field cannot be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{field}: expected {expected}")]
pub struct BadForm {
    /// The field's name, as the APIs have it.
    pub field: &'static str,
    /// What would be accepted.
    pub expected: &'static str,
    /// The same in Chinese.
    pub chinese: &'static str,
}

impl BadForm {
    /// The whole sentence in Chinese.
    pub(crate) fn in_chinese(&self) -> String {
        format!("{}：应为{}", self.field, self.chinese)
    }
}

pub(crate) const fn bad<T>(field: &'static str, expected: &'static str, chinese: &'static str) -> Result<T, BadForm> {
    Err(BadForm { field, expected, chinese })
}
