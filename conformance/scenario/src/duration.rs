//! Durations as people write them in the data files: `500ms`, `8s`, `2m`.

use std::time::Duration;

use serde::{Deserialize, Deserializer, de::Error as _};

/// A text that is not a duration.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("\"{0}\" is not a duration: expected a whole number followed by ms, s or m")]
pub struct DurationError(String);

/// Reads `500ms`, `8s` or `2m`.
pub fn parse(text: &str) -> Result<Duration, DurationError> {
    let wrong = || DurationError(text.to_owned());
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = text.split_at(digits);
    let number: u64 = number.parse().map_err(|_| wrong())?;
    match unit {
        "ms" => Ok(Duration::from_millis(number)),
        "s" => Ok(Duration::from_secs(number)),
        "m" => number
            .checked_mul(60)
            .map(Duration::from_secs)
            .ok_or_else(wrong),
        _ => Err(wrong()),
    }
}

/// For `#[serde(deserialize_with)]` on a field of type `Duration`.
pub fn deserialize<'de, D: Deserializer<'de>>(input: D) -> Result<Duration, D::Error> {
    parse(&String::deserialize(input)?).map_err(D::Error::custom)
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("500ms", Some(500))]
    #[case("8s", Some(8000))]
    #[case("2m", Some(120_000))]
    #[case("8", None)]
    #[case("s", None)]
    #[case("-1s", None)]
    #[case("1h", None)]
    fn reads_whole_numbers_with_a_unit(#[case] text: &str, #[case] millis: Option<u64>) {
        assert_eq!(parse(text).ok(), millis.map(Duration::from_millis));
    }
}
