//! Finds a buyer's id in texts, and puts the pseudonym in its place. Values only.
//!
//! A *body* is JSON of ours (a message, an event, returned purchases): only values of fields that are a buyer's, and members of lists, are
//! compared, each as a whole. *Words* are what people or audits wrote: the id counts where it stands alone, so that `u47` is not found in
//! `u4711` or `u47-b`. Words that are JSON keep their names and codes: of their values those of a buyer's field count, and what is words
//! or JSON itself.

/// How a column can name a buyer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Spelling {
    /// The id, and nothing else.
    Whole,
    /// JSON of ours; what is none is read as words.
    Body,
    /// Words.
    Words,
}

/// Fields of bodies whose value is a buyer.
const BUYER_FIELDS: [&str; 5] = ["user", "user_id", "buyer", "sub", "person"];

/// A buyer's id as it can be spelled, and the pseudonym.
#[derive(Debug, Clone)]
pub(crate) struct Names {
    id: String,
    pseudonym: String,
    /// As it is; in JSON, and in JSON that is text in JSON, where that differs.
    spelled: Vec<String>,
}

impl Names {
    /// Of an id and its pseudonym, which no JSON escapes.
    pub(crate) fn new(id: &str, pseudonym: &str) -> Self {
        let in_json = |text: &str| text.replace('\\', "\\\\").replace('"', "\\\"");
        let mut spelled = vec![id.to_owned(), in_json(id), in_json(&in_json(id))];
        spelled.dedup();
        Self { id: id.to_owned(), pseudonym: pseudonym.to_owned(), spelled }
    }

    /// What to search for in bytes, to find every text that [`Names::renamed`] would change, and some others.
    pub(crate) fn spelled(&self) -> &[String] {
        &self.spelled
    }

    /// Words without the id.
    pub(crate) fn in_text(&self, text: &str) -> String {
        self.in_words(text).unwrap_or_else(|| text.to_owned())
    }

    /// Whether these bytes hold the id, perhaps as a part of another one.
    pub(crate) fn may_be_in(&self, bytes: &[u8]) -> bool {
        let holds = |text: &String| bytes.windows(text.len().max(1)).any(|window| window == text.as_bytes());
        self.spelled.iter().any(holds)
    }

    /// Whether this body names the buyer.
    pub(crate) fn are_in_body(&self, body: &[u8]) -> bool {
        self.may_be_in(body) && self.renamed(Spelling::Body, body).is_some()
    }

    /// The text with the pseudonym; `None`: it does not name the buyer.
    pub(crate) fn renamed(&self, spelling: Spelling, bytes: &[u8]) -> Option<Vec<u8>> {
        if spelling == Spelling::Whole {
            return (bytes == self.id.as_bytes()).then(|| self.pseudonym.clone().into_bytes());
        }
        // What is no UTF-8 is of no program of ours; its readable parts are words.
        let Ok(text) = std::str::from_utf8(bytes) else { return self.in_odd_bytes(bytes) };
        let changed = match json_strings(text) {
            Some(strings) if spelling == Spelling::Body => self.in_json(text, &strings, |of, value| {
                let is_buyers = of.is_none_or(|field| BUYER_FIELDS.contains(&field));
                if is_buyers { self.of_buyer(value) } else { None }
            }),
            Some(strings) => self.in_json(text, &strings, |of, value| {
                let named = of.filter(|field| BUYER_FIELDS.contains(field)).and_then(|_buyers| self.of_buyer(value));
                if named.is_some() {
                    return named;
                }
                let is_words = value.contains(char::is_whitespace) || value.starts_with(['{', '[']);
                let renamed = is_words.then(|| self.renamed(Spelling::Words, value.as_bytes())).flatten();
                renamed.and_then(|bytes| String::from_utf8(bytes).ok())
            }),
            None => self.in_words(text),
        };
        changed.map(String::into_bytes)
    }

    /// A value that is a buyer, or a buyer and a person ([`crate::domain::buyer`]).
    fn of_buyer(&self, value: &str) -> Option<String> {
        let mut parts: Vec<&str> = value.split('\t').collect();
        let is_named = parts.contains(&self.id.as_str());
        parts.iter_mut().filter(|part| **part == self.id).for_each(|part| *part = &self.pseudonym);
        is_named.then(|| parts.join("\t"))
    }

    fn in_json(
        &self,
        text: &str,
        strings: &[JsonString<'_>],
        rename: impl Fn(Option<&str>, &str) -> Option<String>,
    ) -> Option<String> {
        let (mut changed, mut written) = (String::new(), 0);
        for string in strings.iter().filter(|string| !string.is_name) {
            let raw = &text[string.from..string.to];
            let Some(value) = serde_json::from_str::<String>(raw).ok() else { continue };
            let Some(renamed) = rename(string.field, &value) else { continue };
            let Ok(encoded) = serde_json::to_string(&renamed) else { continue };
            changed.push_str(&text[written..string.from]);
            changed.push_str(&encoded);
            written = string.to;
        }
        (written > 0).then(|| changed + &text[written..])
    }

    fn in_words(&self, text: &str) -> Option<String> {
        let mut now: Option<String> = None;
        // The longest spelling first: a shorter one may be a part of it.
        for spelled in self.spelled.iter().rev() {
            now = self.word(now.as_deref().unwrap_or(text), spelled).or(now);
        }
        now
    }

    fn word(&self, text: &str, spelled: &str) -> Option<String> {
        let (mut changed, mut written, mut from) = (String::new(), 0, 0);
        while let Some(found) = text[from..].find(spelled) {
            let (begin, end) = (from + found, from + found + spelled.len());
            if stands_alone(text[..begin].chars().rev()) && stands_alone(text[end..].chars()) {
                changed.push_str(&text[written..begin]);
                changed.push_str(&self.pseudonym);
                (written, from) = (end, end);
            } else {
                from = begin + text[begin..].chars().next().map_or(1, char::len_utf8);
            }
        }
        (written > 0).then(|| changed + &text[written..])
    }

    fn in_odd_bytes(&self, bytes: &[u8]) -> Option<Vec<u8>> {
        let (mut changed, mut any) = (Vec::with_capacity(bytes.len()), false);
        for chunk in bytes.utf8_chunks() {
            let renamed = self.in_words(chunk.valid());
            any |= renamed.is_some();
            changed.extend_from_slice(renamed.as_deref().unwrap_or(chunk.valid()).as_bytes());
            changed.extend_from_slice(chunk.invalid());
        }
        any.then_some(changed)
    }
}

/// Whether an id ends here, by the characters that follow it outwards. Some characters join two parts of one id, but not at the end of a
/// sentence.
fn stands_alone(mut outwards: impl Iterator<Item = char>) -> bool {
    let is_of_an_id = |c: char| c.is_alphanumeric() || c == '_';
    match outwards.next() {
        None => true,
        Some(next) if is_of_an_id(next) => false,
        Some('-' | '.' | '@' | '+') => !outwards.next().is_some_and(is_of_an_id),
        Some(_) => true,
    }
}

/// A string in JSON, with its quotation marks.
struct JsonString<'a> {
    from: usize,
    to: usize,
    /// It is the name of a field.
    is_name: bool,
    /// The field that it is the value of; `None`: a member of a list.
    field: Option<&'a str>,
}

/// The strings of a JSON object or list in their order; `None`: it is no such thing.
fn json_strings(text: &str) -> Option<Vec<JsonString<'_>>> {
    if !text.starts_with(['{', '[']) || serde_json::from_str::<serde::de::IgnoredAny>(text).is_err() {
        return None;
    }
    let bytes = text.as_bytes();
    let (mut strings, mut at, mut field) = (Vec::new(), 0, None);
    // Whether each open bracket is that of a list.
    let mut lists: Vec<bool> = Vec::new();
    while at < bytes.len() {
        match bytes[at] {
            b'[' | b'{' => lists.push(bytes[at] == b'['),
            b']' | b'}' => drop(lists.pop()),
            b'"' => {
                let to = end_of_string(bytes, at)?;
                let behind = bytes[to..].iter().find(|byte| !byte.is_ascii_whitespace());
                let in_list = lists.last().copied().unwrap_or(false);
                let is_name = !in_list && behind == Some(&b':');
                let of = if in_list || is_name { None } else { field };
                strings.push(JsonString { from: at, to, is_name, field: of });
                field = if is_name { text.get(at + 1..to - 1) } else { field };
                at = to;
                continue;
            }
            _ => {}
        }
        at += 1;
    }
    Some(strings)
}

/// Behind the quotation mark that ends the string which begins at `from`.
fn end_of_string(bytes: &[u8], from: usize) -> Option<usize> {
    let mut at = from + 1;
    while at < bytes.len() {
        match bytes[at] {
            b'\\' => at += 2,
            b'"' => return Some(at + 1),
            _ => at += 1,
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn renamed(id: &str, spelling: Spelling, text: &str) -> String {
        let changed = Names::new(id, "forgotten-x").renamed(spelling, text.as_bytes());
        changed.map_or_else(|| "-".to_owned(), |bytes| String::from_utf8(bytes).unwrap())
    }

    #[test]
    fn a_body_is_renamed_where_it_names_the_buyer_and_nowhere_else() {
        let body = |id, text| renamed(id, Spelling::Body, text);
        let event = r#"{"v":1,"rid":"5","sale":"ann","user":"ann","qty":1,"status":"PAID"}"#;
        assert_eq!(body("ann", event), event.replace(r#""user":"ann""#, r#""user":"forgotten-x""#));
        assert_eq!(body("PAID", event), "-", "a status is no buyer");
        assert_eq!(body("an", event), "-");
        let of_person = r#"{"v":1,"user":"ann\tp 1"}"#;
        assert_eq!(body("ann", of_person), r#"{"v":1,"user":"forgotten-x\tp 1"}"#);
        assert_eq!(body("p 1", of_person), r#"{"v":1,"user":"ann\tforgotten-x"}"#);
        assert_eq!(body("an", of_person), "-");
        assert_eq!(body("u\"4", r#"{"user": "u\"4"}"#), r#"{"user": "forgotten-x"}"#);
        let bundle = r#"{"sale":"s","orders":[["7","ann",1,2,3],["8","bob",1,2,3],["9","ann",1,2,3]]}"#;
        assert_eq!(body("ann", bundle), bundle.replace("\"ann\"", "\"forgotten-x\""));
        assert_eq!(body("ann", "12 1 ann\n13 1 anna\n"), "12 1 forgotten-x\n13 1 anna\n", "lines of an entry");
    }

    #[test]
    fn words_are_renamed_where_the_id_stands_alone() {
        let words = |id, text| renamed(id, Spelling::Words, text);
        assert_eq!(
            words("u47", "buyer u47 3 against 4, (u47); u47."),
            "buyer forgotten-x 3 against 4, (forgotten-x); forgotten-x."
        );
        for other in ["u471", "xu47", "u47-b", "a.u47", "u47@mail", "u47_2", ""] {
            assert_eq!(words("u47", other), "-", "{other}");
        }
        assert_eq!(words("买家", "买家的"), "-", "a letter follows");
        assert_eq!(words("u47", "register/u47 and provider|u47"), "register/forgotten-x and provider|forgotten-x");
    }

    #[test]
    fn json_with_words_keeps_its_names_and_what_is_json_in_json_is_found() {
        let text = r#"{"ann":"ann","buyer":"ann","list":["of ann",7,"ann"],"message":"{\"user\":\"ann\"}"}"#;
        let now = r#"{"ann":"ann","buyer":"forgotten-x","list":["of forgotten-x",7,"ann"],"message":"{\"user\":\"forgotten-x\"}"}"#;
        assert_eq!(renamed("ann", Spelling::Words, text), now);
        let deep = r#"{"message":"{\"user\":\"a\\\"b\"}"}"#;
        let now = r#"{"message":"{\"user\":\"forgotten-x\"}"}"#;
        assert_eq!(renamed("a\"b", Spelling::Words, deep), now);
        let names = Names::new("a\"b", "forgotten-x");
        assert!(names.may_be_in(deep.as_bytes()) && !names.may_be_in(now.as_bytes()));
    }

    #[test]
    fn bytes_that_are_no_text_keep_what_is_not_the_id() {
        let odd = [b"\xff ann \xfe".as_slice(), b"anna"].concat();
        let now = [b"\xff forgotten-x \xfe".as_slice(), b"anna"].concat();
        assert_eq!(Names::new("ann", "forgotten-x").renamed(Spelling::Body, &odd), Some(now));
        assert_eq!(Names::new("ann", "forgotten-x").renamed(Spelling::Whole, b"ann"), Some(b"forgotten-x".to_vec()));
    }
}
