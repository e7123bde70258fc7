//! Rules on first-boot settings.

use super::{Candidate, Cause, Field, Rule, syntax};
use crate::v1::CloudInitSource;

pub(super) const RULES: &[Rule] = &[user_data, network_data, some_data];

/// Longest data that may stand in the object itself.
const LONGEST_INLINE: usize = 2048;

/// The settings of a machine: the field of the volume's source, the name of the source, the source.
fn settings<'a>(c: &Candidate<'a>) -> Vec<(Field, &'static str, &'a CloudInitSource)> {
    let list = c.root.child("volumes");
    c.spec
        .volumes
        .iter()
        .flatten()
        .enumerate()
        .flat_map(|(i, volume)| {
            [
                ("cloudInitNoCloud", &volume.cloud_init_no_cloud),
                ("cloudInitConfigDrive", &volume.cloud_init_config_drive),
            ]
            .into_iter()
            .filter_map(|(kind, source)| Some((list.index(i).child(kind), kind, source.as_ref()?)))
            .collect::<Vec<_>>()
        })
        .collect()
}

/// What is known of one half of the settings.
struct Data<'a> {
    plain: Option<&'a str>,
    base64: Option<&'a str>,
    has_secret: bool,
    word: &'static str,
    base64_name: &'static str,
    secret_name: &'static str,
}

fn of_user(source: &CloudInitSource) -> Data<'_> {
    Data {
        plain: filled(&source.user_data),
        base64: filled(&source.user_data_base64),
        has_secret: source.secret_ref.is_some(),
        word: "userdata",
        base64_name: "userDataBase64",
        secret_name: "UserDataSecretRef",
    }
}

fn of_network(source: &CloudInitSource) -> Data<'_> {
    Data {
        plain: filled(&source.network_data),
        base64: filled(&source.network_data_base64),
        has_secret: source.network_data_secret_ref.is_some(),
        word: "networkdata",
        base64_name: "networkDataBase64",
        secret_name: "NetworkDataSecretRef",
    }
}

fn filled(text: &Option<String>) -> Option<&str> {
    text.as_deref().filter(|text| !text.is_empty())
}

impl Data<'_> {
    fn sources(&self) -> usize {
        [self.plain.is_some(), self.base64.is_some(), self.has_secret]
            .into_iter()
            .filter(|there| *there)
            .count()
    }

    fn faults(&self, field: &Field, kind: &str) -> Vec<Cause> {
        let mut causes = Vec::new();
        let decoded = self.base64.map(syntax::base64_len);
        if decoded == Some(None) {
            let field = field.child(self.base64_name);
            // The original writes the end of the path twice here.
            let message = format!(
                "{field}.{kind}.{} is not a valid base64 value.",
                self.base64_name
            );
            causes.push(Cause::invalid(&field, message));
        }
        if self.sources() > 1 {
            let message = format!("{field} must have only one {}source set.", self.word);
            causes.push(Cause::invalid(field, message));
        }
        let inline = self
            .plain
            .map_or(0, str::len)
            .max(decoded.flatten().unwrap_or(0));
        if inline > LONGEST_INLINE {
            let message = format!(
                "{field} {} exceeds {LONGEST_INLINE} byte limit. Should use {} for larger data.",
                self.word, self.secret_name
            );
            causes.push(Cause::invalid(field, message));
        }
        causes
    }
}

/// 123, 124, 125: user data has one source, is base64 where it says so, and is short when inline.
fn user_data(c: &Candidate<'_>) -> Vec<Cause> {
    settings(c)
        .into_iter()
        .flat_map(|(field, kind, source)| of_user(source).faults(&field, kind))
        .collect()
}

/// 126, 127, 128: the same for network data.
fn network_data(c: &Candidate<'_>) -> Vec<Cause> {
    settings(c)
        .into_iter()
        .flat_map(|(field, kind, source)| of_network(source).faults(&field, kind))
        .collect()
}

/// 129: there is something to set.
fn some_data(c: &Candidate<'_>) -> Vec<Cause> {
    settings(c)
        .into_iter()
        .filter(|(_, _, source)| of_user(source).sources() + of_network(source).sources() == 0)
        .map(|(field, _, _)| {
            let message = format!(
                "{field} must have at least one userdatasource or one networkdatasource set."
            );
            Cause::invalid(&field, message)
        })
        .collect()
}
