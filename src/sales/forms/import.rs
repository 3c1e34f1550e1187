//! Many sales and drops of one file: JSON, one a line or in a list, each as its own call would take it.
//!
//! Input: the text of the file. Output: all of its entries as drafts, or every mistake in it, each with its place and its field.

use super::{NewDropForm, NewSaleForm};
use crate::domain::drops::SalesDrop;
use crate::domain::ids::SaleId;
use crate::domain::sale::Sale;
use crate::domain::timetable::Timetable;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};
use std::collections::HashMap;
use std::fmt;

/// Most sales of one file, those of drops among them.
const IMPORT_SALES_MAX: usize = 1_000;
/// Fields that a sale has to have, with the other names that they may have.
const REQUIRED: [&[&str]; 6] =
    [&["sale_id", "id"], &["product_id", "product"], &["title"], &["stock"], &["starts_at"], &["ends_at"]];

/// What one entry makes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ImportEntry {
    /// A sale of its own; whether it is opened at once.
    Sale(Box<(Sale, Timetable)>, bool),
    /// A drop with its sales.
    Drop(SalesDrop, Vec<(Sale, Timetable)>),
}

impl ImportEntry {
    /// The drop, if it is one.
    pub(crate) const fn drop(&self) -> Option<&SalesDrop> {
        match self {
            Self::Sale(..) => None,
            Self::Drop(drop, _) => Some(drop),
        }
    }

    /// Its sales.
    pub(crate) fn sales(&self) -> &[(Sale, Timetable)] {
        match self {
            Self::Sale(planned, _) => std::slice::from_ref(planned),
            Self::Drop(_, sales) => sales,
        }
    }
}

/// Where an entry stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    /// Line of the file, from 1.
    Line(usize),
    /// Entry of the list, from 1.
    Entry(usize),
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Line(number) => write!(f, "line {number}"),
            Self::Entry(number) => write!(f, "entry {number}"),
        }
    }
}

/// What is wrong at one place.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{place}: {}{}{problem}", of(.subject), of(.field))]
pub(crate) struct ImportProblem {
    /// Where.
    pub(crate) place: Place,
    /// Which sale of a drop, or which sale.
    pub(crate) subject: String,
    /// Empty: of the whole entry.
    pub(crate) field: String,
    /// What is there, or what would be accepted.
    pub(crate) problem: String,
}

fn of(text: &str) -> String {
    if text.is_empty() { String::new() } else { format!("{text}: ") }
}

/// A checked file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Import {
    /// In its order.
    pub(crate) entries: Vec<(Place, ImportEntry)>,
}

impl Import {
    /// Reads and checks a whole file.
    ///
    /// # Errors
    /// Every mistake that can be seen without the database.
    pub(crate) fn read(text: &str) -> Result<Self, Vec<ImportProblem>> {
        let (mut entries, mut problems) = (Vec::new(), Vec::new());
        for (place, text) in texts(text)? {
            match entry(place, text) {
                Ok(entry) => entries.push((place, entry)),
                Err(found) => problems.extend(found),
            }
        }
        let import = Self { entries };
        problems.extend(import.doubles());
        let count = import.sales().count();
        let whole = |problem: String| ImportProblem { problem, ..at(Place::Line(1)) };
        if count > IMPORT_SALES_MAX {
            problems.push(whole(format!("the file has {count} sales, expected at most {IMPORT_SALES_MAX}: split it")));
        }
        if count == 0 && problems.is_empty() {
            problems.push(whole("there is no sale in the file".to_owned()));
        }
        if problems.is_empty() { Ok(import) } else { Err(problems) }
    }

    /// All sales, those of drops among them.
    pub(crate) fn sales(&self) -> impl Iterator<Item = &(Sale, Timetable)> {
        self.entries.iter().flat_map(|(_, entry)| entry.sales())
    }

    /// All drops.
    pub(crate) fn drops(&self) -> impl Iterator<Item = &SalesDrop> {
        self.entries.iter().filter_map(|(_, entry)| entry.drop())
    }

    /// Ids that are there twice; the later one is the mistake.
    fn doubles(&self) -> Vec<ImportProblem> {
        let (mut sales, mut drops, mut found) = (HashMap::new(), HashMap::new(), Vec::new());
        for (place, entry) in &self.entries {
            if let ImportEntry::Drop(drop, _) = entry
                && let Some(first) = drops.insert(&drop.drop_id, *place)
            {
                let problem = format!("{} is at {first}, too", drop.drop_id);
                found.push(ImportProblem { field: "drop_id".to_owned(), problem, ..at(*place) });
            }
            for (sale, _) in entry.sales() {
                if let Some(first) = sales.insert(&sale.sale_id, *place) {
                    let problem = format!("{} is at {first}, too", sale.sale_id);
                    found.push(ImportProblem { field: "sale_id".to_owned(), problem, ..at(*place) });
                }
            }
        }
        found
    }
}

const fn at(place: Place) -> ImportProblem {
    ImportProblem { place, subject: String::new(), field: String::new(), problem: String::new() }
}

/// The entries as texts: those of a list, or one a line, or the file as a whole.
fn texts(text: &str) -> Result<Vec<(Place, &str)>, Vec<ImportProblem>> {
    let text = text.trim_start_matches('\u{feff}');
    if text.trim_start().starts_with('[') {
        let list: Vec<&RawValue> = serde_json::from_str(text).map_err(|error| {
            vec![ImportProblem { problem: format!("this is no JSON: {error}"), ..at(Place::Line(error.line())) }]
        })?;
        return Ok((1..).map(Place::Entry).zip(list.into_iter().map(RawValue::get)).collect());
    }
    if serde_json::from_str::<&RawValue>(text).is_ok() {
        return Ok(vec![(Place::Line(1), text)]);
    }
    let lines = (1..).map(Place::Line).zip(text.lines());
    Ok(lines.filter(|(_, line)| !line.trim().is_empty()).collect())
}

fn entry(place: Place, text: &str) -> Result<ImportEntry, Vec<ImportProblem>> {
    let one = |problem: String| vec![ImportProblem { problem, ..at(place) }];
    let fields = match serde_json::from_str(text) {
        Ok(Value::Object(fields)) => fields,
        Ok(_) => return Err(one("expected a JSON object, a sale or a drop".to_owned())),
        Err(error) => return Err(one(format!("this is no JSON, at column {}: {error}", error.column()))),
    };
    if fields.contains_key("drop_id") || fields.contains_key("sales") {
        return drop_entry(place, text, &fields);
    }
    let form: NewSaleForm = serde_json::from_str(text).map_err(|error| {
        let found = unread_fields(place, "", &fields);
        if found.is_empty() { one(error.to_string()) } else { found }
    })?;
    let found = rules_broken(place, "", &form);
    if !found.is_empty() {
        return Err(found);
    }
    let warm = form.warm;
    let bad = |bad: crate::http::bad_form::BadForm| one(bad.to_string());
    Ok(ImportEntry::Sale(Box::new(form.plain().map_err(bad)?), warm))
}

fn drop_entry(place: Place, text: &str, fields: &Map<String, Value>) -> Result<ImportEntry, Vec<ImportProblem>> {
    let one = |problem: String| vec![ImportProblem { problem, ..at(place) }];
    let no_sales = Vec::new();
    let sales = fields.get("sales").and_then(Value::as_array).unwrap_or(&no_sales);
    let mut found = Vec::new();
    for (number, sale) in (1..).zip(sales) {
        let subject = named(number, sale);
        match sale.as_object() {
            None => {
                found.push(ImportProblem { subject, problem: "expected a JSON object".to_owned(), ..at(place) });
            }
            Some(fields) => match serde_json::from_value::<NewSaleForm>(sale.clone()) {
                Ok(form) => found.extend(rules_broken(place, &subject, &form)),
                Err(_) => found.extend(unread_fields(place, &subject, fields)),
            },
        }
    }
    if !found.is_empty() {
        return Err(found);
    }
    let form: NewDropForm = serde_json::from_str(text).map_err(|error| one(error.to_string()))?;
    let (drop, sales) = form.drafts().map_err(|bad| one(bad.to_string()))?;
    Ok(ImportEntry::Drop(drop, sales))
}

/// A sale of a drop, by its id if it has one.
fn named(number: usize, sale: &Value) -> String {
    let id = ["sale_id", "id"].into_iter().find_map(|name| sale.get(name)?.as_str());
    id.and_then(|id| SaleId::parse(id).ok()).map_or_else(|| format!("sale {number}"), |id| format!("sale {id}"))
}

/// The fields of a sale that cannot be read, each tried by itself in a good sale, and those that are not there.
fn unread_fields(place: Place, subject: &str, fields: &Map<String, Value>) -> Vec<ImportProblem> {
    let problem = |field: &str, problem: String| {
        let (subject, field) = (subject.to_owned(), field.to_owned());
        ImportProblem { subject, field, problem, ..at(place) }
    };
    let good = json!({ "sale_id": "s", "product_id": "p", "title": "t", "stock": 1,
        "starts_at": "2026-01-01T10:00:00Z", "ends_at": "2026-01-01T12:00:00Z" });
    let mut found = Vec::new();
    for (name, value) in fields {
        let mut tried = good.as_object().cloned().unwrap_or_default();
        let same = REQUIRED.iter().find(|names| names.contains(&name.as_str()));
        same.into_iter().flat_map(|names| names.iter()).for_each(|other| drop(tried.remove(*other)));
        tried.insert(name.clone(), value.clone());
        if let Err(error) = serde_json::from_value::<NewSaleForm>(Value::Object(tried)) {
            found.push(problem(name, error.to_string()));
        }
    }
    for names in REQUIRED {
        match names.iter().filter(|name| fields.contains_key(**name)).count() {
            0 => found.push(problem(names.first().copied().unwrap_or_default(), "is missing".to_owned())),
            1 => {}
            _ => found.push(problem(&names.join(" and "), "are two names of one field".to_owned())),
        }
    }
    found
}

fn rules_broken(place: Place, subject: &str, form: &NewSaleForm) -> Vec<ImportProblem> {
    let problem = |bad: crate::http::bad_form::BadForm| ImportProblem {
        subject: subject.to_owned(),
        field: bad.field.to_owned(),
        problem: format!("expected {}", bad.expected),
        place,
    };
    form.complaints().into_iter().map(problem).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sale(id: &str, more: &Value) -> Value {
        let mut sale = json!({ "sale_id": id, "product_id": "p", "title": "t", "stock": 5,
            "starts_at": "2027-01-01T10:00:00+08:00", "ends_at": "2027-01-01T12:00:00+08:00" });
        sale.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        sale
    }

    fn said(text: &str) -> Vec<String> {
        Import::read(text).unwrap_err().iter().map(ToString::to_string).collect()
    }

    #[test]
    fn lines_a_list_and_one_object_are_the_same_entries() {
        let (a, b) = (sale("a", &json!({ "warm": true })), sale("b", &json!({})));
        let drop = json!({ "drop_id": "d", "title": "t", "sales": [sale("c", &json!({}))] });
        let lines = Import::read(&format!("\u{feff}{a}\r\n\n{b}\n{drop}")).unwrap();
        let places: Vec<String> = lines.entries.iter().map(|(place, _)| place.to_string()).collect();
        assert_eq!(places, ["line 1", "line 3", "line 4"]);
        let list = Import::read(&serde_json::to_string_pretty(&json!([a, b, drop])).unwrap()).unwrap();
        let entries = |import: &Import| import.entries.iter().map(|(_, entry)| entry.clone()).collect::<Vec<_>>();
        assert_eq!(entries(&lines), entries(&list));
        assert!(matches!(&list.entries[0].1, ImportEntry::Sale(_, true)));
        let alone = Import::read(&serde_json::to_string_pretty(&drop).unwrap()).unwrap();
        assert_eq!(entries(&alone), entries(&list)[2..]);
    }

    #[test]
    fn every_mistake_is_named_with_its_line_and_its_field() {
        let lines = [
            sale("a", &json!({ "stock": -1, "title": "", "currency": "RMB" })).to_string(),
            "{\"sale_id\": \"x\",".to_owned(),
            sale("b c", &json!({ "stock": "many", "colour": 1 })).to_string(),
            json!({ "sale_id": "d", "title": "t" }).to_string(),
            json!({ "drop_id": "d", "title": "t", "sales": [sale("e", &json!({ "limit": 0 })), 7, sale("f", &json!({}))] })
                .to_string(),
            sale("g", &json!({ "rollover_to": "a" })).to_string(),
            "7".to_owned(),
        ];
        let said = said(&lines.join("\n"));
        for expected in [
            "line 1: title: expected 1 to 200 characters",
            "line 1: stock: expected 0 to 1,000,000,000 units",
            "line 1: currency: expected the code",
            "line 2: this is no JSON, at column",
            "line 3: sale_id: ",
            "line 3: stock: invalid type: string \"many\"",
            "line 3: colour: unknown field",
            "line 4: product_id: is missing",
            "line 4: ends_at: is missing",
            "line 5: sale e: limit: expected a whole number",
            "line 5: sale 2: expected a JSON object",
            "line 6: rollover_to: expected none",
            "line 7: expected a JSON object",
        ] {
            assert!(said.iter().any(|one| one.starts_with(expected)), "{expected}: {said:#?}");
        }
        assert_eq!(said.len(), 15, "{said:#?}");
    }

    #[test]
    fn ids_are_there_once_and_a_file_is_bounded() {
        let two = [sale("a", &json!({})), sale("b", &json!({})), sale("a", &json!({}))].map(|sale| sale.to_string());
        assert_eq!(said(&two.join("\n")), ["line 3: sale_id: a is at line 1, too"]);
        let many: Vec<String> =
            (0..=IMPORT_SALES_MAX).map(|n| sale(&format!("s{n}"), &json!({})).to_string()).collect();
        assert_eq!(said(&many.join("\n")), ["line 1: the file has 1001 sales, expected at most 1000: split it"]);
        assert_eq!(Import::read(&many[1..].join("\n")).unwrap().entries.len(), IMPORT_SALES_MAX);
        assert_eq!(said(" \n"), ["line 1: there is no sale in the file"]);
        let twice = sale("a", &json!({})).to_string().replacen('{', "{\"stock\":500,", 1);
        assert!(said(&twice)[0].contains("duplicate field `stock`"), "{:?}", said(&twice));
    }
}
