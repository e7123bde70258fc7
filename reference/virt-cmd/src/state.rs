//! A state as JSON, with words instead of numbers: the launcher leaves its last one in a file, so that
//! a restarted handler can tell how the guest of a dead launcher ended.

use std::{fs, io, path::Path};

use thiserror::Error;

use crate::proto::DomainState;

/// Why a state file could not be used.
#[derive(Debug, Error)]
pub enum StateFileError {
    /// The file cannot be read or written.
    #[error("failed to access the state file {path}")]
    Access {
        /// The file.
        path: String,
        /// The system's answer.
        source: io::Error,
    },
    /// The file does not hold a state.
    #[error("the state file {path} cannot be understood")]
    Malformed {
        /// The file.
        path: String,
        /// What the parser says.
        source: serde_json::Error,
    },
}

/// Reads the last state of a launcher; `None` when it never wrote one.
///
/// # Errors
/// [`StateFileError`] when the file exists and is no state.
pub fn read(path: &Path) -> Result<Option<DomainState>, StateFileError> {
    match fs::read(path) {
        Ok(bytes) => {
            serde_json::from_slice(&bytes)
                .map(Some)
                .map_err(|source| StateFileError::Malformed {
                    path: path.display().to_string(),
                    source,
                })
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(source) => Err(StateFileError::Access {
            path: path.display().to_string(),
            source,
        }),
    }
}

/// Replaces the state file in one step: a reader sees the old state or the new one, never a part.
///
/// # Errors
/// [`StateFileError`] when the directory is not writable.
pub fn write(path: &Path, state: &DomainState) -> Result<(), StateFileError> {
    let bytes = serde_json::to_vec(state).map_err(|source| StateFileError::Malformed {
        path: path.display().to_string(),
        source,
    })?;
    let fresh = path.with_extension("json.new");
    fs::write(&fresh, bytes)
        .and_then(|()| fs::rename(&fresh, path))
        .map_err(|source| StateFileError::Access {
            path: path.display().to_string(),
            source,
        })
}

macro_rules! by_name {
    ($module:ident, $kind:ty, $what:literal) => {
        pub(crate) mod $module {
            use serde::{Deserialize, Deserializer, Serializer, de::Error};

            pub(crate) fn serialize<S: Serializer>(
                value: &i32,
                serializer: S,
            ) -> Result<S::Ok, S::Error> {
                match <$kind>::try_from(*value) {
                    Ok(known) => serializer.serialize_str(known.as_str_name()),
                    Err(_) => serializer.serialize_i32(*value),
                }
            }

            pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
                deserializer: D,
            ) -> Result<i32, D::Error> {
                let name = String::deserialize(deserializer)?;
                <$kind>::from_str_name(&name).map(i32::from).ok_or_else(|| {
                    D::Error::custom(format!(concat!("unknown ", $what, " `{}`"), name))
                })
            }
        }
    };
}

by_name!(phase_name, crate::proto::Phase, "phase");
by_name!(ending_name, crate::proto::Ending, "ending");
