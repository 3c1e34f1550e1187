//! Orders in lines, read by rules of this judge's own.

use serde_json::{Value, json};

/// The content type of a message with orders in lines.
pub const CONTENT_TYPE: &str = "application/vnd.seckill.orders.lines";

/// The orders, (request id, body as the envelope of version 1 has it) each; what is no order has no body.
pub fn read(text: &str) -> Vec<(String, Option<Value>)> {
    let (mut head, mut number, mut orders) = (None, 0, Vec::new());
    for line in text.lines() {
        if let Some(fields) = line.strip_prefix('@') {
            head = block(fields);
            number = head.as_ref().map_or(0, |(_, first)| *first);
            continue;
        }
        let fields: Vec<&str> = line.splitn(3, ' ').collect();
        let body = match (&head, fields.as_slice()) {
            (Some((common, _)), [rid, quantity, user]) => quantity.parse::<u64>().ok().map(|quantity| {
                let mut body = common.clone();
                body["rid"] = json!(rid);
                body["qty"] = json!(quantity);
                body["user"] = json!(user);
                body["no"] = json!(number);
                body
            }),
            _ => None,
        };
        number += 1;
        orders.push((fields[0].to_owned(), body));
    }
    orders
}

/// What the orders of a block have in common, and their first number.
fn block(fields: &str) -> Option<(Value, u64)> {
    let [shard, epoch, at, first, sale] = <[&str; 5]>::try_from(fields.splitn(5, ' ').collect::<Vec<_>>()).ok()?;
    let number = |text: &str| text.parse::<u64>().ok();
    let common = json!({"v": 1, "sale": sale, "shard": number(shard)?, "epoch": number(epoch)?, "at": number(at)?});
    Some((common, number(first)?))
}

#[test]
fn orders_of_two_blocks_have_what_their_block_says() {
    let read = read("@3 1 99 7 s\n5 2 a b\n6 1 c\n@0 2 98 1 t\n7 1 d\nx\n");
    let ids: Vec<&str> = read.iter().map(|(id, _)| id.as_str()).collect();
    assert_eq!(ids, ["5", "6", "7", "x"]);
    assert_eq!(
        read[1].1,
        Some(
            json!({"v": 1, "rid": "6", "sale": "s", "user": "c", "qty": 1, "shard": 3, "epoch": 1, "no": 8, "at": 99})
        )
    );
    assert_eq!((read[0].1.as_ref().unwrap()["user"].as_str(), read[3].1.is_none()), (Some("a b"), true));
}
