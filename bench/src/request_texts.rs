//! Requests as texts, for measurements that send the same ones again and again.

/// The head of a request, up to further fields.
pub(super) fn head(line: &str, host: &str, access: &str) -> String {
    format!("{line} HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {access}\r\n")
}

/// A purchase of one unit with this head; `key` is a further field, or nothing.
pub(super) fn purchase(head: &str, key: &str) -> String {
    format!("{head}{key}Content-Type: application/json\r\nContent-Length: 14\r\n\r\n{{\"quantity\":1}}")
}

/// A purchase of one unit in a sale, without a key; `more` are further header lines, or nothing.
pub(super) fn purchase_in(sale: &str, host: &str, access: &str, more: &str) -> String {
    purchase(&head(&format!("POST /v1/sales/{sale}/orders"), host, access), more)
}
