//! The few quantities that a machine is built from, as whole numbers: rounded up, never silently wrong.

use k8s_openapi::apimachinery::pkg::api::resource::Quantity;

/// A quantity that is no number, negative, or too large.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("the quantity {0:?} is not usable here")]
pub struct BadQuantity(pub String);

const MIB: u128 = 1 << 20;

/// Bytes, rounded up to a whole MiB as the guest gets them.
pub fn memory_bytes(quantity: &Quantity) -> Result<u64, BadQuantity> {
    let bytes = ceil(quantity, MIB)?;
    u64::try_from(bytes).map_err(|_| BadQuantity(quantity.0.clone()))
}

/// A count such as processors, rounded up to a whole one.
pub fn count(quantity: &Quantity) -> Result<u32, BadQuantity> {
    let count = ceil(quantity, 1)?;
    u32::try_from(count).map_err(|_| BadQuantity(quantity.0.clone()))
}

/// The value, rounded up to a multiple of `unit`.
fn ceil(quantity: &Quantity, unit: u128) -> Result<u128, BadQuantity> {
    let bad = || BadQuantity(quantity.0.clone());
    let (numerator, denominator) = fraction(quantity.0.trim()).ok_or_else(bad)?;
    let denominator = denominator.checked_mul(unit).ok_or_else(bad)?;
    numerator
        .div_ceil(denominator)
        .checked_mul(unit)
        .ok_or_else(bad)
}

/// The exact value as a fraction of whole numbers.
fn fraction(text: &str) -> Option<(u128, u128)> {
    let end = text
        .find(|c: char| !(c.is_ascii_digit() || c == '.' || c == '+'))
        .unwrap_or(text.len());
    let (number, suffix) = text.split_at(end);
    let number = number.strip_prefix('+').unwrap_or(number);
    let (whole, decimals) = number.split_once('.').unwrap_or((number, ""));
    let digits = format!("{whole}{decimals}");
    let numerator: u128 = digits.parse().ok()?;
    let decimal_places = u32::try_from(decimals.len()).ok()?;
    let (multiply, divide) = scale(suffix)?;
    Some((
        numerator.checked_mul(multiply)?,
        10u128.checked_pow(decimal_places)?.checked_mul(divide)?,
    ))
}

/// What a suffix multiplies and divides by.
fn scale(suffix: &str) -> Option<(u128, u128)> {
    let binary = |power: u32| Some((1 << (10 * power), 1));
    let decimal = |power: u32| Some((10u128.checked_pow(power)?, 1));
    match suffix {
        "" => Some((1, 1)),
        "n" => Some((1, 1_000_000_000)),
        "u" => Some((1, 1_000_000)),
        "m" => Some((1, 1_000)),
        "k" => decimal(3),
        "M" => decimal(6),
        "G" => decimal(9),
        "T" => decimal(12),
        "P" => decimal(15),
        "E" => decimal(18),
        "Ki" => binary(1),
        "Mi" => binary(2),
        "Gi" => binary(3),
        "Ti" => binary(4),
        "Pi" => binary(5),
        "Ei" => binary(6),
        _ => {
            let exponent: i32 = suffix.strip_prefix(['e', 'E'])?.parse().ok()?;
            let power = 10u128.checked_pow(exponent.unsigned_abs())?;
            Some(if exponent < 0 { (1, power) } else { (power, 1) })
        }
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("128Mi", 128 << 20)]
    #[case("100M", 100_663_296)]
    #[case("1M", 1 << 20)]
    #[case("1.5Gi", 1536 << 20)]
    #[case("1e9", 954 << 20)]
    #[case("0", 0)]
    #[case("1073741825", 1025 << 20)]
    fn memory_is_rounded_up_to_a_mebibyte(#[case] text: &str, #[case] bytes: u64) {
        assert_eq!(memory_bytes(&Quantity(text.to_owned())), Ok(bytes));
    }

    #[rstest]
    #[case("2", 2)]
    #[case("500m", 1)]
    #[case("1500m", 2)]
    #[case("2.1", 3)]
    fn processors_are_rounded_up(#[case] text: &str, #[case] n: u32) {
        assert_eq!(count(&Quantity(text.to_owned())), Ok(n));
    }

    #[rstest]
    #[case("")]
    #[case("-1Gi")]
    #[case("many")]
    #[case("1Gib")]
    #[case("1.2.3")]
    #[case("99999999999999999999Ei")]
    #[case("1e99")]
    fn nonsense_is_an_error(#[case] text: &str) {
        assert!(memory_bytes(&Quantity(text.to_owned())).is_err());
    }
}
