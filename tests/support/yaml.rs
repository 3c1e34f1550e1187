//! Reads the part of YAML that `docs/asyncapi.yaml` is written in: mappings by indentation, `{…}` and `[…]` on one line, plain and
//! single-quoted texts, and texts folded by `>-`. Anything else fails the test that reads it.

use serde_json::{Map, Value};

/// The document as a value.
pub fn parse(text: &str) -> Value {
    let lines = text.lines().filter(|line| !line.trim().is_empty() && !line.trim_start().starts_with('#'));
    let lines: Vec<(usize, &str)> = lines.map(|line| (line.len() - line.trim_start().len(), line.trim())).collect();
    let mut at = 0;
    let document = block(&lines, &mut at, 0);
    assert_eq!(at, lines.len(), "not understood: {:?}", lines.get(at));
    document
}

fn block(lines: &[(usize, &str)], at: &mut usize, indent: usize) -> Value {
    let mut map = Map::new();
    while let Some((of, line)) = lines.get(*at).filter(|(of, _)| *of == indent) {
        let (key, rest) = line.split_once(':').unwrap_or_else(|| panic!("no key: {line}"));
        *at += 1;
        let deeper = lines.get(*at).map(|(of, _)| *of).filter(|next| next > of);
        let value = match (rest.trim(), deeper) {
            ("", Some(deeper)) => block(lines, at, deeper),
            (">-", Some(_)) => {
                let folded: Vec<&str> =
                    lines[*at..].iter().take_while(|(next, _)| next > of).map(|(_, text)| *text).collect();
                *at += folded.len();
                Value::String(folded.join(" "))
            }
            (rest, _) => Flow { rest }.whole(),
        };
        assert!(map.insert(key.to_owned(), value).is_none(), "{key} is given twice");
    }
    Value::Object(map)
}

/// A value on one line.
struct Flow<'a> {
    rest: &'a str,
}

impl<'a> Flow<'a> {
    /// What a line has after its key.
    fn whole(mut self) -> Value {
        if !self.rest.starts_with(['{', '[', '\'']) {
            return scalar(self.rest);
        }
        let value = self.value();
        assert!(self.rest.trim().is_empty(), "behind a value: {}", self.rest);
        value
    }

    fn value(&mut self) -> Value {
        match self.rest.chars().next() {
            Some('{') => self.map(),
            Some('[') => self.list(),
            Some('\'') => self.quoted(),
            _ => scalar(self.plain(&[',', '}', ']'])),
        }
    }

    fn plain(&mut self, ends: &[char]) -> &'a str {
        let end = self.rest.find(ends).unwrap_or(self.rest.len());
        let (text, rest) = self.rest.split_at(end);
        self.rest = rest;
        text.trim()
    }

    fn takes(&mut self, wanted: char) -> bool {
        let rest = self.rest.trim_start();
        self.rest = rest.strip_prefix(wanted).unwrap_or(rest).trim_start();
        rest.starts_with(wanted)
    }

    fn map(&mut self) -> Value {
        assert!(self.takes('{'));
        let mut map = Map::new();
        while !self.takes('}') {
            let key = self.plain(&[':']).to_owned();
            assert!(self.takes(':'), "{}", self.rest);
            let value = self.value();
            assert!(map.insert(key, value).is_none(), "a key is given twice");
            assert!(self.takes(',') || self.rest.starts_with('}'), "{}", self.rest);
        }
        Value::Object(map)
    }

    fn list(&mut self) -> Value {
        assert!(self.takes('['));
        let mut list = Vec::new();
        while !self.takes(']') {
            list.push(self.value());
            assert!(self.takes(',') || self.rest.starts_with(']'), "{}", self.rest);
        }
        Value::Array(list)
    }

    fn quoted(&mut self) -> Value {
        let (text, rest) = self.rest[1..].split_once('\'').expect("its end");
        assert!(!rest.starts_with('\''), "a quote in a quoted text");
        self.rest = rest;
        Value::String(text.to_owned())
    }
}

fn scalar(text: &str) -> Value {
    match text {
        "null" => Value::Null,
        "true" => Value::Bool(true),
        "false" => Value::Bool(false),
        text => text.parse::<i64>().map_or_else(|_| Value::String(text.to_owned()), Value::from),
    }
}
