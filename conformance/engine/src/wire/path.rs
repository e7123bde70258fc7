//! Paths and queries of the API server, as plain text in and out.

use conformance_scenario::kinds::KindInfo;
use serde_json::Value;

/// The path of one object: `/apis/kubevirt.io/v1/namespaces/ns/virtualmachines/vm`.
pub fn object(kind: &KindInfo, namespace: &str, name: &str) -> String {
    format!("{}/{}", kind.collection_path(namespace), segment(name))
}

/// The path of a KubeVirt subresource.
pub fn subresource(namespace: &str, plural: &str, name: &str, verb: &str) -> String {
    let (namespace, name) = (segment(namespace), segment(name));
    format!("/apis/subresources.kubevirt.io/v1/namespaces/{namespace}/{plural}/{name}/{verb}")
}

/// The collection that a manifest belongs to, in this namespace unless it names another one.
pub fn collection_of(manifest: &Value, namespace: &str) -> Option<String> {
    let kind = conformance_scenario::kinds::find(manifest.get("kind")?.as_str()?)?;
    let own = manifest.pointer("/metadata/namespace");
    let namespace = own.and_then(Value::as_str).unwrap_or(namespace);
    Some(kind.collection_path(namespace))
}

/// Appends a query; values are escaped, empty lists add nothing.
pub fn with_query(path: &str, query: &[(&str, &str)]) -> String {
    let mut text = path.to_owned();
    for (index, (key, value)) in query.iter().enumerate() {
        text.push(if index == 0 { '?' } else { '&' });
        text.push_str(key);
        text.push('=');
        text.push_str(&escape(value, b"/:,=!"));
    }
    text
}

/// One segment of a path: a name with a slash in it must not become two.
fn segment(text: &str) -> String {
    escape(text, b":")
}

fn escape(text: &str, also_plain: &[u8]) -> String {
    use std::fmt::Write as _;
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) || also_plain.contains(&byte) {
            out.push(char::from(byte));
        } else {
            // Writing to a String cannot fail.
            let _ = write!(out, "%{byte:02X}");
        }
    }
    out.replace('=', "%3D")
}

#[cfg(test)]
mod tests {
    use conformance_scenario::kinds;
    use rstest::rstest;
    use serde_json::json;

    use super::*;

    #[rstest]
    #[case(&[], "/p")]
    #[case(&[("watch", "1")], "/p?watch=1")]
    #[case(&[("labelSelector", "a/b=c,d"), ("x", "y z&")], "/p?labelSelector=a/b%3Dc,d&x=y%20z%26")]
    fn queries_are_escaped(#[case] query: &[(&str, &str)], #[case] wanted: &str) {
        assert_eq!(with_query("/p", query), wanted);
    }

    #[test]
    fn a_slash_in_a_name_stays_in_its_segment() {
        let pod = kinds::find("Pod").unwrap();
        assert_eq!(object(pod, "ns", "a/b"), "/api/v1/namespaces/ns/pods/a%2Fb");
    }

    #[rstest]
    #[case(json!({"kind": "Pod"}), Some("/api/v1/namespaces/ns/pods"))]
    #[case(json!({"kind": "Pod", "metadata": {"namespace": "other"}}), Some("/api/v1/namespaces/other/pods"))]
    #[case(json!({"kind": "Node"}), Some("/api/v1/nodes"))]
    #[case(json!({"kind": "Banana"}), None)]
    #[case(json!({}), None)]
    fn manifests_find_their_collection(#[case] manifest: Value, #[case] wanted: Option<&str>) {
        assert_eq!(collection_of(&manifest, "ns").as_deref(), wanted);
    }
}
