//! The requests of a run, built once; per request only the tokens are filled in.

use seckill::domain::ids::{RequestId, SaleId};

const END: &str = "\r\n\r\n";

/// Request texts of one run against one sale.
#[derive(Debug)]
pub(super) struct RequestTemplates {
    sale: String,
    host: String,
    order: String,
    token: String,
    place: String,
    body: String,
}

impl RequestTemplates {
    /// Builds them for one server, sale and quantity; `enters_line`: entries of its line in place of purchases.
    pub fn new(host: &str, (sale, quantity): (&SaleId, u32), enters_line: bool) -> Self {
        let what = if enters_line { "entries" } else { "orders" };
        let sale = format!("/v1/sales/{sale}");
        let body = format!("{{\"quantity\":{quantity}}}");
        let length = body.len();
        Self {
            order: format!(
                "POST {sale}/{what} HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\nContent-Length: {length}\r\nAuthorization: Bearer "
            ),
            token: format!(
                "POST {sale}/tokens HTTP/1.1\r\nHost: {host}\r\nContent-Length: 0\r\nAuthorization: Bearer "
            ),
            place: format!("{sale}/places HTTP/1.1\r\nHost: {host}\r\nContent-Length: 0\r\nAuthorization: Bearer "),
            host: host.to_owned(),
            sale,
            body,
        }
    }

    /// A purchase; `key` is sent as `Idempotency-Key`.
    pub fn order(&self, out: &mut String, access: &str, key: Option<&str>) {
        out.clear();
        out.push_str(&self.order);
        out.push_str(access);
        if let Some(key) = key {
            out.push_str("\r\nIdempotency-Key: ");
            out.push_str(key);
        }
        out.push_str(END);
        out.push_str(&self.body);
    }

    /// A question for a purchase token; `ticket` is of the waiting room, empty for none.
    pub fn token(&self, out: &mut String, access: &str, ticket: &str) {
        out.clear();
        out.push_str(&self.token);
        out.push_str(access);
        with_ticket(out, ticket);
    }

    /// A place in the waiting room, or with its ticket the question how far it is.
    pub fn place(&self, out: &mut String, access: &str, ticket: &str) {
        out.clear();
        out.push_str(if ticket.is_empty() { "POST " } else { "GET " });
        out.push_str(&self.place);
        out.push_str(access);
        with_ticket(out, ticket);
    }

    /// A question for the status at `path`.
    pub fn status(&self, out: &mut String, access: &str, path: &str) {
        out.clear();
        for part in ["GET ", path, " HTTP/1.1\r\nHost: ", &self.host, "\r\nAuthorization: Bearer ", access, END] {
            out.push_str(part);
        }
    }

    /// Where the status of a request is asked.
    pub fn status_path(&self, id: RequestId) -> String {
        format!("{}/orders/{id}", self.sale)
    }
}

fn with_ticket(out: &mut String, ticket: &str) {
    if !ticket.is_empty() {
        out.push_str("\r\nSeckill-Place: ");
        out.push_str(ticket);
    }
    out.push_str(END);
}
