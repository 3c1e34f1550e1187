//! What a new sale needs of its buyers, and the rules for it.

use crate::domain::needs::{Needs, NeedsFault};
use crate::http::bad_form::{BadForm, bad};
use serde_json::{Map, Value};

/// What the command line says of them.
pub(super) const HELP: &str =
    "What a buyer needs, for good: {\"tier\": [\"gold\"]} (a fact and its values), {\"pass\": true}, or both";

/// Needs as they are given: names of facts with lists of values, and `pass`.
pub(crate) type GivenNeeds = Map<String, Value>;

/// Needs on the command line: JSON.
pub(super) fn given(text: &str) -> Result<GivenNeeds, String> {
    serde_json::from_str(text).map_err(|error| format!("{error}, expected JSON, e.g. {{\"tier\": [\"gold\"]}}"))
}

/// As they would be given again.
pub(super) fn of(needs: &Needs) -> GivenNeeds {
    match serde_json::to_value(needs) {
        Ok(Value::Object(given)) => given,
        Ok(_) | Err(_) => Map::new(),
    }
}

/// The needs that were given.
pub(super) fn checked(given: Option<GivenNeeds>) -> Result<Option<Needs>, BadForm> {
    const VALUES: (&str, &str) = (
        "for each fact a list of 1 to 32 different texts of 1 to 64 bytes, e.g. {\"tier\": [\"gold\"]}, and true for pass",
        "每个事实为 1 至 32 个互不相同、各 1 至 64 字节的文本组成的列表，例如 {\"tier\": [\"gold\"]}；pass 为 true",
    );
    let Some(given) = given else { return Ok(None) };
    let Ok(needs) = serde_json::from_value::<Needs>(Value::Object(given)) else {
        return bad("needs", VALUES.0, VALUES.1);
    };
    let (expected, chinese) = match needs.fault() {
        None => return Ok(Some(needs)),
        Some(NeedsFault::Count) => (
            "1 to 16 facts, or a pass ({\"pass\": true}), or both",
            "1 至 16 个事实，或通行证（{\"pass\": true}），或两者",
        ),
        Some(NeedsFault::Name) => (
            "names of facts: 1 to 32 of a-z 0-9 _, a letter first, and none that tokens have for something else (sub, exp, …)",
            "事实的名称：1 至 32 个 a-z 0-9 _，以字母开头，且不是令牌已有的名称（sub、exp 等）",
        ),
        Some(NeedsFault::Values) => VALUES,
        Some(NeedsFault::Length) => ("at most 2,000 characters in all", "合计至多 2,000 个字符"),
    };
    bad("needs", expected, chinese)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_needed_is_refused_with_what_can() {
        let read = |text: &str| checked(Some(given(text).unwrap()));
        let needs = read(r#"{"pass": true, "tier": ["gold"]}"#).unwrap().unwrap();
        assert_eq!(checked(Some(of(&needs))), Ok(Some(needs)));
        for (text, said) in [
            ("{}", "1 to 16 facts"),
            (r#"{"pass": false}"#, "1 to 16 facts"),
            (r#"{"tier": "gold"}"#, "a list of 1 to 32"),
            (r#"{"tier": [7]}"#, "a list of 1 to 32"),
            (r#"{"pass": "yes"}"#, "true for pass"),
            (r#"{"Tier": ["gold"]}"#, "a letter first"),
            (r#"{"sub": ["ann"]}"#, "something else"),
        ] {
            let bad = read(text).unwrap_err();
            assert!(bad.field == "needs" && bad.expected.contains(said), "{text}: {bad}");
        }
        assert!(given("tier=gold").unwrap_err().contains("expected JSON"));
        assert_eq!(checked(None), Ok(None));
    }
}
