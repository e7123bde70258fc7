//! The front proxy's terms, and the identity that a request carries under them.

use std::collections::BTreeMap;

use axum::http::HeaderMap;
use thiserror::Error;
use virt_kit::serve::PeerIdentity;

/// On what terms the front proxy speaks for users.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FrontProxy {
    /// Names that its certificate may have; any when empty.
    pub allowed_names: Vec<String>,
    /// Headers that may hold the user's name; the first that is there counts.
    pub user_headers: Vec<String>,
    /// Headers that hold groups; all count.
    pub group_headers: Vec<String>,
    /// Headers that may hold the user's uid.
    pub uid_headers: Vec<String>,
    /// Beginnings of headers that hold other facts.
    pub extra_prefixes: Vec<String>,
}

/// The terms, and the CA that signs the front proxy's certificate.
pub type Terms = (FrontProxy, String);

/// Why the terms cannot be used.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum TermsError {
    /// The cluster has no front proxy.
    #[error("{0} is not set; the API server was started without an aggregation layer")]
    Missing(&'static str),
    /// A list is not one.
    #[error("{0} is not a JSON list of names")]
    List(&'static str),
}

/// Reads the data of ConfigMap `extension-apiserver-authentication`.
pub fn terms(data: &BTreeMap<String, String>) -> Result<Terms, TermsError> {
    let list = |key: &'static str| match data.get(key) {
        None => Ok(Vec::new()),
        Some(text) => serde_json::from_str(text).map_err(|_| TermsError::List(key)),
    };
    let needed = |key: &'static str| {
        list(key).and_then(|names: Vec<String>| {
            if names.is_empty() {
                Err(TermsError::Missing(key))
            } else {
                Ok(names)
            }
        })
    };
    const CA: &str = "requestheader-client-ca-file";
    let ca = data
        .get(CA)
        .filter(|pem| !pem.trim().is_empty())
        .ok_or(TermsError::Missing(CA))?;
    let proxy = FrontProxy {
        allowed_names: list("requestheader-allowed-names")?,
        user_headers: needed("requestheader-username-headers")?,
        group_headers: list("requestheader-group-headers")?,
        uid_headers: list("requestheader-uid-headers")?,
        extra_prefixes: list("requestheader-extra-headers-prefix")?,
    };
    Ok((proxy, ca.clone()))
}

/// A user that the front proxy has authenticated.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Identity {
    /// Name.
    pub user: String,
    /// Groups.
    pub groups: Vec<String>,
    /// Uid, when told.
    pub uid: Option<String>,
    /// Other facts.
    pub extra: BTreeMap<String, Vec<String>>,
}

impl FrontProxy {
    /// The user that a request comes from. `peer` is empty unless the TLS layer has verified a
    /// certificate against the front proxy's CA.
    pub fn identify(
        &self,
        peer: &PeerIdentity,
        headers: &HeaderMap,
    ) -> Result<Identity, &'static str> {
        let name = peer
            .common_name
            .as_ref()
            .ok_or("the request does not come through the front proxy")?;
        if !self.allowed_names.is_empty() && !self.allowed_names.contains(name) {
            return Err("the client certificate is not the front proxy's");
        }
        let first = |names: &[String]| {
            names
                .iter()
                .filter_map(|name| headers.get(name)?.to_str().ok())
                .find(|value| !value.is_empty())
                .map(str::to_owned)
        };
        Ok(Identity {
            user: first(&self.user_headers).ok_or("the front proxy names no user")?,
            groups: self
                .group_headers
                .iter()
                .flat_map(|name| headers.get_all(name))
                .filter_map(|value| value.to_str().ok())
                .map(str::to_owned)
                .collect(),
            uid: first(&self.uid_headers),
            extra: self.extra(headers),
        })
    }

    fn extra(&self, headers: &HeaderMap) -> BTreeMap<String, Vec<String>> {
        let mut extra = BTreeMap::<String, Vec<String>>::new();
        for (name, value) in headers {
            let key = self.extra_prefixes.iter().find_map(|prefix| {
                let (start, rest) = name.as_str().split_at_checked(prefix.len())?;
                start.eq_ignore_ascii_case(prefix).then_some(rest)
            });
            if let (Some(key), Ok(value)) = (key, value.to_str()) {
                extra
                    .entry(unescape(key))
                    .or_default()
                    .push(value.to_owned());
            }
        }
        extra
    }
}

/// Keys come percent-encoded, since header names hold few characters.
fn unescape(key: &str) -> String {
    let mut bytes = Vec::with_capacity(key.len());
    let mut rest = key.as_bytes();
    while let Some((byte, tail)) = rest.split_first() {
        let code = (*byte == b'%')
            .then(|| tail.get(..2))
            .flatten()
            .and_then(|hex| str::from_utf8(hex).ok())
            .and_then(|hex| u8::from_str_radix(hex, 16).ok());
        match code {
            Some(code) => {
                bytes.push(code);
                rest = &tail[2..];
            }
            None => {
                bytes.push(*byte);
                rest = tail;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use axum::http::{HeaderName, HeaderValue};
    use rstest::rstest;

    use super::*;

    fn data() -> BTreeMap<String, String> {
        [
            ("requestheader-client-ca-file", "PEM"),
            ("requestheader-allowed-names", r#"["front-proxy-client"]"#),
            ("requestheader-username-headers", r#"["X-Remote-User"]"#),
            ("requestheader-group-headers", r#"["X-Remote-Group"]"#),
            (
                "requestheader-extra-headers-prefix",
                r#"["X-Remote-Extra-"]"#,
            ),
        ]
        .into_iter()
        .map(|(k, v)| (k.to_owned(), v.to_owned()))
        .collect()
    }

    fn peer(name: Option<&str>) -> PeerIdentity {
        PeerIdentity {
            common_name: name.map(str::to_owned),
            organizations: Vec::new(),
        }
    }

    fn headers(list: &[(&str, &str)]) -> HeaderMap {
        list.iter()
            .map(|(name, value)| {
                let name: HeaderName = name.parse().unwrap();
                (name, HeaderValue::from_str(value).unwrap())
            })
            .collect()
    }

    #[test]
    fn identity_is_read_by_the_names_in_the_map() {
        let (proxy, ca) = terms(&data()).unwrap();
        let headers = headers(&[
            ("x-remote-user", "jane"),
            ("x-remote-group", "a"),
            ("x-remote-group", "b"),
            ("x-remote-extra-acme.com%2fproject", "x"),
        ]);
        let identity = proxy
            .identify(&peer(Some("front-proxy-client")), &headers)
            .unwrap();
        assert_eq!(ca, "PEM");
        assert_eq!(identity.user, "jane");
        assert_eq!(identity.groups, ["a", "b"]);
        assert_eq!(identity.extra["acme.com/project"], ["x"]);
    }

    #[rstest]
    #[case::no_certificate(None, &[("x-remote-user", "admin")])]
    #[case::another_certificate(Some("somebody"), &[("x-remote-user", "admin")])]
    #[case::no_user(Some("front-proxy-client"), &[("x-remote-group", "system:masters")])]
    #[case::empty_user(Some("front-proxy-client"), &[("x-remote-user", "")])]
    fn headers_alone_prove_nothing(#[case] name: Option<&str>, #[case] list: &[(&str, &str)]) {
        let (proxy, _) = terms(&data()).unwrap();
        assert!(proxy.identify(&peer(name), &headers(list)).is_err());
    }

    #[test]
    fn any_name_will_do_when_the_cluster_names_none() {
        let mut data = data();
        data.insert("requestheader-allowed-names".to_owned(), "[]".to_owned());
        let (proxy, _) = terms(&data).unwrap();
        let headers = headers(&[("x-remote-user", "jane")]);
        assert!(proxy.identify(&peer(Some("any")), &headers).is_ok());
        assert!(proxy.identify(&peer(None), &headers).is_err());
    }

    #[rstest]
    #[case("requestheader-client-ca-file")]
    #[case("requestheader-username-headers")]
    fn without_an_aggregation_layer_there_are_no_terms(#[case] key: &'static str) {
        let mut data = data();
        data.remove(key);
        assert_eq!(terms(&data), Err(TermsError::Missing(key)));
    }
}
