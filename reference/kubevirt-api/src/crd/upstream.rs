//! The fields of the original API as a table of facts: type, field, kind, required.
//!
//! It completes our CRDs with what our Rust types do not model, so that a user's manifest neither
//! loses fields nor gets warnings that the original would not give.

use std::{collections::BTreeMap, sync::LazyLock};

const TABLE: &str = include_str!("upstream.tsv");

/// What a field holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kind {
    /// An object of a type in this table, or of one without fields.
    Object(String),
    /// A list.
    List(Box<Kind>, ListType),
    /// An object with free keys.
    Map(Box<Kind>),
    /// Text; perhaps one of a few words.
    Text(Vec<String>),
    /// A whole number in this format.
    Integer(String),
    /// Any number.
    Number,
    /// True or false.
    Boolean,
    /// A resource quantity.
    Quantity,
    /// A point in time.
    Time,
    /// A type of another project.
    Foreign(String),
}

/// How server-side apply treats a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ListType {
    /// Nothing is said.
    Unset,
    /// The list is one value.
    Atomic,
    /// Members are unique.
    Set,
    /// Members have keys.
    Map(Vec<String>),
}

/// One field of a type.
#[derive(Clone, Debug)]
pub struct Field {
    /// Its name.
    pub name: String,
    /// What it holds.
    pub kind: Kind,
    /// Whether it must be there.
    pub presence: Presence,
}

/// Whether a field must be there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Presence {
    /// It may be left out.
    Optional,
    /// It must be stored, but who leaves it out gets an empty value.
    Filled,
    /// Who leaves it out is refused.
    Required,
}

impl Field {
    /// Whether a stored object always has it.
    #[must_use]
    pub fn is_stored(&self) -> bool {
        self.presence != Presence::Optional
    }
}

/// The table, by type.
pub static TYPES: LazyLock<BTreeMap<&'static str, Vec<Field>>> = LazyLock::new(read);

/// The fields of a type; none when the table has no such type.
#[must_use]
pub fn fields(type_: &str) -> &'static [Field] {
    TYPES.get(type_).map_or(&[], Vec::as_slice)
}

fn read() -> BTreeMap<&'static str, Vec<Field>> {
    let mut types = BTreeMap::<_, Vec<Field>>::new();
    for line in TABLE.lines().filter(|line| !line.starts_with('#')) {
        let mut columns = line.split('\t');
        let (Some(type_), Some(name), Some(kind)) =
            (columns.next(), columns.next(), columns.next())
        else {
            continue;
        };
        types.entry(type_).or_default().push(Field {
            name: name.to_owned(),
            kind: kind_of(kind.trim()),
            presence: match columns.next() {
                Some("required") => Presence::Required,
                Some("filled") => Presence::Filled,
                _ => Presence::Optional,
            },
        });
    }
    types
}

fn kind_of(text: &str) -> Kind {
    if let Some((inner, rest)) = bracketed(text, '[', ']') {
        return Kind::List(Box::new(kind_of(inner)), list_type(rest.trim()));
    }
    if let Some((inner, _)) = bracketed(text, '{', '}') {
        return Kind::Map(Box::new(kind_of(inner)));
    }
    let (word, rest) = text.split_once(' ').unwrap_or((text, ""));
    match word {
        "string" => Kind::Text(words(rest)),
        "string/null" => Kind::Time,
        "boolean" => Kind::Boolean,
        "number/float" => Kind::Number,
        "k8s.io.apimachinery.pkg.api.resource.Quantity" => Kind::Quantity,
        "k8s.io.apimachinery.pkg.apis.meta.v1.Time" => Kind::Time,
        "k8s.io.apimachinery.pkg.apis.meta.v1.Duration" => Kind::Text(Vec::new()),
        _ => match word.strip_prefix("integer") {
            Some(format) => Kind::Integer(format.trim_start_matches('/').to_owned()),
            None if word.starts_with("v1.") => Kind::Object(word.to_owned()),
            None => Kind::Foreign(word.to_owned()),
        },
    }
}

fn bracketed(text: &str, open: char, close: char) -> Option<(&str, &str)> {
    text.strip_prefix(open)?.split_once(close)
}

fn words(text: &str) -> Vec<String> {
    text.split('|')
        .filter(|word| !word.is_empty())
        .map(str::to_owned)
        .collect()
}

fn list_type(text: &str) -> ListType {
    match text.split_once(':') {
        Some(("map", keys)) => ListType::Map(keys.split(',').map(str::to_owned).collect()),
        _ if text == "atomic" => ListType::Atomic,
        _ if text == "set" => ListType::Set,
        _ => ListType::Unset,
    }
}
