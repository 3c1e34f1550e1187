//! Lines of a script that are filled in before it is loaded.
//!
//! A line that ends in `-- @slot <name>` is a slot. The line itself is the default, so that the file is a complete script; a
//! filling takes the place of the whole line.

#[cfg(feature = "faults")]
use crate::faults::Mechanism;

const MARK: &str = "-- @slot ";

/// The name of the slot on a line, if there is one.
fn slot_of(line: &str) -> Option<&str> {
    line.split_once(MARK).map(|(_, name)| name.trim_end())
}

/// The script with its slots filled; `fill` answers `None` where the default is to stay.
pub(super) fn assemble(script: &str, fill: impl Fn(&str) -> Option<String>) -> String {
    let mut assembled = String::with_capacity(script.len() + 128);
    for line in script.lines() {
        match slot_of(line).and_then(&fill) {
            Some(filling) => assembled.push_str(&filling),
            None => assembled.push_str(line),
        }
        assembled.push('\n');
    }
    assembled
}

/// The names of all slots of a script, in their order.
#[cfg(any(test, feature = "faults"))]
pub(super) fn slots_in(script: &str) -> Vec<&str> {
    script.lines().filter_map(slot_of).collect()
}

/// What stands in the slot of a mechanism that this process leaves out: nothing, or another rule. Test builds only.
#[cfg(feature = "faults")]
pub(super) fn left_out(slot: &str) -> Option<String> {
    let mechanism = Mechanism::ALL.iter().find(|mechanism| mechanism.code() == slot)?;
    let other_rules = [
        (Mechanism::ReplayCheck, "local record = nil"),
        (Mechanism::GivenOnce, "local before = false"),
        (Mechanism::WithdrawOnce, "local before = false"),
        (Mechanism::PersonCounted, "local QUANTIFIED, LIMITED = WIDTH == (BY_PERSON and 4 or 3), USERS"),
        (Mechanism::DoorOfLine, "local lowest = door == 'token' and 49 or 0; if door == 'line' then door = 'open' end"),
        (Mechanism::DropCounted, "for other in string.gmatch('', '[^ ]+') do"),
    ];
    let rule = other_rules.into_iter().find(|(of, _)| of == mechanism).map_or("", |(_, rule)| rule);
    mechanism.is_off().then(|| rule.to_owned())
}

#[cfg(not(feature = "faults"))]
pub(super) const fn left_out(_slot: &str) -> Option<String> {
    None
}

/// The script without the mechanisms that this process leaves out, if there are such in it.
#[cfg(feature = "faults")]
pub(super) fn with_left_out(script: &str) -> Option<String> {
    let is_whole = slots_in(script).into_iter().all(|slot| left_out(slot).is_none());
    (!is_whole).then(|| assemble(script, left_out))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_filling_replaces_its_line_and_a_slot_without_one_keeps_its_default() {
        let script = "#!lua\nlocal a = 1 -- @slot first\nlocal b = 2 -- @slot second\nreturn a + b\n";
        assert_eq!(slots_in(script), ["first", "second"]);
        let assembled = assemble(script, |slot| (slot == "first").then(|| "local a = 7".to_owned()));
        assert_eq!(assembled, "#!lua\nlocal a = 7\nlocal b = 2 -- @slot second\nreturn a + b\n");
    }
}
