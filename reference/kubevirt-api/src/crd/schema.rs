//! From the schema that the derive makes of our types to the one that the original serves.
//!
//! The derive marks every `Option` nullable, knows no list types and only knows what we model; the
//! walk below follows our schema and the table of upstream fields side by side and mends that.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::upstream::{self, Kind, ListType};

/// Description of fields that are stored and shown but that nothing here acts on.
pub const UNSERVED: &str = "Kept as sent; this implementation does not act on it.";
const PRESERVE: &str = "x-kubernetes-preserve-unknown-fields";

/// Mends the schema of a type in place.
pub fn complete(schema: &mut Value, type_: &str) {
    clean(schema);
    with_type(schema, type_);
}

/// Takes out what the derive says too much: nulls, defaults, formats that Kubernetes does not know.
fn clean(schema: &mut Value) {
    let Value::Object(map) = schema else { return };
    let time = map.get("format").is_some_and(|f| f == "date-time");
    map.remove("default");
    map.remove("nullable");
    if time {
        // Clients written in Go send null for a time that is not set.
        map.insert("nullable".to_owned(), json!(true));
    }
    if let Some(Value::Array(words)) = map.get_mut("enum") {
        words.retain(|word| !word.is_null());
    }
    let format = map.get("format").and_then(Value::as_str);
    match format {
        Some("uint8" | "uint16" | "uint32") => {
            map.insert("format".to_owned(), json!("int32"));
        }
        Some("uint64" | "uint") => {
            map.insert("format".to_owned(), json!("int64"));
        }
        _ => {}
    }
    if map.get("type").is_some_and(|t| t == "integer") {
        map.remove("maximum");
    }
    for key in ["properties", "items", "additionalProperties"] {
        match map.get_mut(key) {
            Some(Value::Object(inner)) if key == "properties" => {
                inner.values_mut().for_each(clean);
            }
            Some(inner) => clean(inner),
            None => {}
        }
    }
}

fn with_type(schema: &mut Value, type_: &str) {
    let fields = upstream::fields(type_);
    let Value::Object(map) = schema else { return };
    if fields.is_empty() {
        return;
    }
    let properties = map
        .entry("properties")
        .or_insert_with(|| Value::Object(Map::new()));
    let Value::Object(properties) = properties else {
        return;
    };
    for field in fields {
        match properties.get_mut(&field.name) {
            Some(ours) => with_kind(ours, &field.kind),
            None => {
                let mut made = of_kind(&field.kind);
                describe(&mut made, UNSERVED);
                properties.insert(field.name.clone(), made);
            }
        }
    }
    map.remove(PRESERVE);
    let required: Vec<&str> = fields
        .iter()
        .filter(|field| field.is_stored())
        .map(|field| field.name.as_str())
        .collect();
    if required.is_empty() {
        map.remove("required");
    } else {
        map.insert("required".to_owned(), json!(required));
    }
}

fn with_kind(schema: &mut Value, kind: &Kind) {
    if is_opaque(schema) {
        let description = schema.get("description").cloned();
        let mut made = of_kind(kind);
        if is_opaque(&made) {
            made = schema.clone();
        }
        if is_metadata(kind) {
            // `creationTimestamp: null` and whole nulls are common in templates made by Go programs.
            made["nullable"] = json!(true);
        }
        if let Some(description) = description {
            made["description"] = description;
        }
        *schema = made;
        return;
    }
    match kind {
        Kind::Object(type_) => with_type(schema, type_),
        Kind::List(member, list_type) => {
            set_list_type(schema, list_type);
            if let Some(items) = schema.get_mut("items") {
                with_kind(items, member);
            }
        }
        _ => {}
    }
}

fn is_metadata(kind: &Kind) -> bool {
    matches!(kind, Kind::Foreign(name) if name.ends_with("ObjectMeta"))
}

fn is_opaque(schema: &Value) -> bool {
    let marked =
        |schema: &Value| schema.get(PRESERVE).is_some() && schema.get("properties").is_none();
    marked(schema) || schema.get("items").is_some_and(marked)
}

fn set_list_type(schema: &mut Value, list_type: &ListType) {
    match list_type {
        ListType::Unset => {}
        ListType::Atomic => schema["x-kubernetes-list-type"] = json!("atomic"),
        ListType::Set => schema["x-kubernetes-list-type"] = json!("set"),
        ListType::Map(keys) => {
            schema["x-kubernetes-list-type"] = json!("map");
            schema["x-kubernetes-list-map-keys"] = json!(keys);
        }
    }
}

fn describe(schema: &mut Value, description: &str) {
    schema["description"] = json!(description);
}

/// A schema made from the table alone.
fn of_kind(kind: &Kind) -> Value {
    match kind {
        Kind::Text(_) => json!({"type": "string"}),
        Kind::Boolean => json!({"type": "boolean"}),
        Kind::Number => json!({"type": "number"}),
        Kind::Time => json!({"type": "string", "format": "date-time", "nullable": true}),
        Kind::Quantity => quantity(),
        Kind::Integer(format) if format.starts_with("int") => {
            json!({"type": "integer", "format": format})
        }
        Kind::Integer(_) => json!({"type": "integer"}),
        Kind::Foreign(_) => json!({"type": "object", PRESERVE: true}),
        Kind::Map(value) => json!({"type": "object", "additionalProperties": of_kind(value)}),
        Kind::List(member, list_type) => {
            let mut list = json!({"type": "array", "items": of_kind(member)});
            set_list_type(&mut list, list_type);
            list
        }
        Kind::Object(type_) => object(type_),
    }
}

fn object(type_: &str) -> Value {
    let fields = upstream::fields(type_);
    if fields.is_empty() {
        return json!({"type": "object"});
    }
    let properties: BTreeMap<&str, Value> = fields
        .iter()
        .map(|field| (field.name.as_str(), of_kind(&field.kind)))
        .collect();
    let required: Vec<&str> = fields
        .iter()
        .filter(|field| field.is_stored())
        .map(|field| field.name.as_str())
        .collect();
    let mut made = json!({"type": "object", "properties": properties});
    if !required.is_empty() {
        made["required"] = json!(required);
    }
    made
}

fn quantity() -> Value {
    json!({
        "anyOf": [{"type": "integer"}, {"type": "string"}],
        "pattern": r"^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$",
        "x-kubernetes-int-or-string": true
    })
}
