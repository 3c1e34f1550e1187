//! The row of `operator_acts` for what became of a request, or of another system's message. Pure.

use super::action::{DlqAction, DlqActionResult, DlqGroup, DlqReportLine};
use crate::domain::operator::{ActOutcome, ActTarget, Actor, Operation, OperatorAct};
use serde_json::{Value, json};

/// A message of another system is kept whole up to this size, bytes. Ours have at most 4,096.
const MESSAGE_BYTES_MAX: usize = 256 * 1024;

/// The row; `None` for a request that was not tried.
pub(super) fn row(actor: &Actor, action: &DlqAction, group: &DlqGroup, line: &DlqReportLine) -> Option<OperatorAct> {
    if line.result == DlqActionResult::NotTried {
        return None;
    }
    let (operation, reason) = match action {
        DlqAction::Replay => (Operation::DlqReplay, None),
        DlqAction::GiveUp(reason) => (Operation::DlqGiveUp, Some(reason.clone())),
    };
    let target = match line.request_id {
        Some(id) => ActTarget::Request(id.to_string()),
        None => ActTarget::Entry(line.entries.first().cloned().unwrap_or_default()),
    };
    let mut row = OperatorAct::new(actor, operation, target);
    row.sale_id = group.entries.iter().find_map(|entry| entry.sale_id.clone());
    row.outcome = if line.result.is_trouble() { ActOutcome::Failed } else { ActOutcome::Ok };
    row.code = serde_json::to_value(&line.result).ok().and_then(|code| code.as_str().map(str::to_owned));
    row.reason = reason;
    let mut before = json!({ "entries": line.entries });
    if line.result == DlqActionResult::Dropped {
        // The only copy of the message from now on.
        add_message(&mut before, group.entries.first().map_or(&[], |entry| &entry.payload));
    } else {
        row.after = Some(json!({ "detail": line.detail }));
    }
    row.before = Some(before);
    Some(row)
}

/// Adds the message as text, or in hexadecimal digits if it is not UTF-8; a longer one as its beginning and its length.
fn add_message(before: &mut Value, message: &[u8]) {
    let kept = message.get(..MESSAGE_BYTES_MAX).unwrap_or(message);
    match std::str::from_utf8(kept) {
        Ok(text) => before["message"] = Value::String(text.to_owned()),
        Err(_) => before["message_hex"] = Value::String(kept.iter().map(|byte| format!("{byte:02x}")).collect()),
    }
    if kept.len() < message.len() {
        before["message_bytes"] = json!(message.len());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept(message: &[u8]) -> Value {
        let mut before = json!({});
        add_message(&mut before, message);
        before
    }

    #[test]
    fn a_message_is_kept_whole_whatever_its_bytes_and_bounded() {
        let long = "x".repeat(5_000);
        assert_eq!(kept(long.as_bytes()), json!({ "message": long }));
        assert_eq!(kept(&[0xff, 0x00]), json!({ "message_hex": "ff00" }));
        let huge = vec![b'x'; MESSAGE_BYTES_MAX + 1];
        assert_eq!(kept(&huge)["message_bytes"], MESSAGE_BYTES_MAX + 1);
        assert_eq!(kept(&huge)["message"].as_str().unwrap().len(), MESSAGE_BYTES_MAX);
    }
}
