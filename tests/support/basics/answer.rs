//! What the API answers, for assertions.

use serde_json::Value;

/// An HTTP answer, taken apart.
#[derive(Debug, Clone)]
pub struct Answer {
    /// Status code.
    pub status: u16,
    /// Headers.
    pub headers: reqwest::header::HeaderMap,
    /// Body as it came.
    pub body: String,
    /// Body as JSON; null when it is none.
    pub json: Value,
}

impl Answer {
    /// Sends a request.
    pub async fn of(request: reqwest::RequestBuilder) -> Self {
        let response = request.send().await.expect("an answer");
        let (status, headers) = (response.status().as_u16(), response.headers().clone());
        let body = response.text().await.expect("a body");
        let json = serde_json::from_str(&body).unwrap_or(Value::Null);
        Self { status, headers, body, json }
    }

    /// A text field; empty when it is missing.
    pub fn text(&self, field: &str) -> String {
        self.json[field].as_str().unwrap_or_default().to_owned()
    }

    /// The problem's code.
    pub fn code(&self) -> String {
        self.text("code")
    }

    /// Whether it says that everything is sold: by the script, or by the entry, which may have seen the empty bucket in between.
    pub fn is_sold_out(&self) -> bool {
        self.status == 410 && ["P2-R2", "P1-S2"].contains(&self.code().as_str())
    }

    /// The seconds of `Retry-After`; 0 when it is missing.
    pub fn retry_after_s(&self) -> u64 {
        self.header("retry-after").parse().unwrap_or_default()
    }

    /// A header; empty when it is missing.
    pub fn header(&self, name: &str) -> &str {
        self.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
    }
}
