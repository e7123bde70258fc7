//! Quantities as text: reading any spelling, writing the canonical one.

use super::{BINARY_MAX, Format, NANO, Quantity, QuantityError};

/// Decimal suffixes and their power of ten.
const DECIMAL: [(&str, i32); 10] = [
    ("n", -9),
    ("u", -6),
    ("m", -3),
    ("", 0),
    ("k", 3),
    ("M", 6),
    ("G", 9),
    ("T", 12),
    ("P", 15),
    ("E", 18),
];
/// Binary suffixes, each 1024 times the one before.
const BINARY: [&str; 7] = ["", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];

/// What a suffix stands for.
enum Scale {
    Ten(i32, Format),
    Two(u32),
}

pub(super) fn parse(text: &str) -> Result<Quantity, QuantityError> {
    if text.is_empty() {
        return Err(QuantityError::Format);
    }
    let (negative, rest) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let (whole, rest) = split_digits(rest);
    let (fraction, suffix) = match rest.strip_prefix('.') {
        Some(rest) => split_digits(rest),
        None => ("", rest),
    };
    check_shape(suffix)?;
    let scale = scale_of(suffix)?;
    // Zeros at the end of a fraction say nothing; without them more spellings fit into the range.
    let fraction = fraction.trim_end_matches('0');
    let digits = number(whole.trim_start_matches('0'), fraction)?;
    let places = i32::try_from(fraction.len()).map_err(|_| QuantityError::Range)?;
    let (nanos, format) = match scale {
        Scale::Ten(exponent, format) => (
            times_ten(digits, exponent.saturating_sub(places).saturating_add(9))?,
            format,
        ),
        Scale::Two(exponent) => binary(digits, exponent, places)?,
    };
    let nanos = if negative { -nanos } else { nanos };
    Ok(Quantity { nanos, format })
}

fn split_digits(text: &str) -> (&str, &str) {
    let end = text
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(text.len());
    text.split_at(end)
}

/// Letters, then perhaps a sign, then digits, then nothing.
fn check_shape(suffix: &str) -> Result<(), QuantityError> {
    let rest = suffix.trim_start_matches(|c| "eEinumkKMGTP".contains(c));
    let rest = rest.strip_prefix(['-', '+']).unwrap_or(rest);
    if rest.chars().all(|c| c.is_ascii_digit()) {
        Ok(())
    } else {
        Err(QuantityError::Format)
    }
}

fn scale_of(suffix: &str) -> Result<Scale, QuantityError> {
    if let Some((_, exponent)) = DECIMAL.iter().find(|(s, _)| *s == suffix) {
        return Ok(Scale::Ten(*exponent, Format::DecimalSi));
    }
    if let Some(power) = (10..)
        .step_by(10)
        .zip(&BINARY[1..])
        .find(|(_, s)| **s == suffix)
    {
        return Ok(Scale::Two(power.0));
    }
    let exponent = suffix
        .strip_prefix(['e', 'E'])
        .ok_or(QuantityError::Suffix)?;
    exponent
        .parse()
        .map(|exponent| Scale::Ten(exponent, Format::DecimalExponent))
        .map_err(|_| QuantityError::Suffix)
}

fn number(whole: &str, fraction: &str) -> Result<i128, QuantityError> {
    whole
        .bytes()
        .chain(fraction.bytes())
        .try_fold(0_i128, |sum, digit| {
            sum.checked_mul(10)?.checked_add(i128::from(digit - b'0'))
        })
        .ok_or(QuantityError::Range)
}

/// `digits` times ten to that power; what falls below one is rounded up, so that a wish for a
/// little never becomes a wish for nothing.
fn times_ten(digits: i128, power: i32) -> Result<i128, QuantityError> {
    if digits == 0 {
        return Ok(0);
    }
    let factor = 10_i128.checked_pow(power.unsigned_abs());
    match (power >= 0, factor) {
        (true, factor) => factor
            .and_then(|factor| digits.checked_mul(factor))
            .ok_or(QuantityError::Range),
        (false, Some(factor)) => Ok((digits - 1) / factor + 1),
        (false, None) => Ok(1),
    }
}

fn binary(digits: i128, exponent: u32, places: i32) -> Result<(i128, Format), QuantityError> {
    let scaled = digits.checked_mul(1 << exponent);
    let nanos = match scaled {
        Some(scaled) => match times_ten(scaled, 9 - places) {
            Ok(nanos) => nanos.min(BINARY_MAX),
            Err(_) => BINARY_MAX,
        },
        None if places == 0 => BINARY_MAX,
        None => return Err(QuantityError::Range),
    };
    let format = if nanos > 0 && nanos < NANO {
        Format::DecimalSi
    } else {
        Format::BinarySi
    };
    Ok((nanos, format))
}

pub(super) fn canonical(quantity: Quantity) -> String {
    let Quantity { nanos, format } = quantity;
    if nanos == 0 {
        return "0".to_owned();
    }
    let small = nanos.abs() < 1024 * NANO;
    match format {
        Format::BinarySi if !small && nanos % NANO == 0 => canonical_binary(nanos / NANO),
        Format::BinarySi | Format::DecimalSi => canonical_decimal(nanos),
        Format::DecimalExponent => canonical_exponent(nanos),
    }
}

fn canonical_binary(mut units: i128) -> String {
    let mut step = 0;
    while units % 1024 == 0 && step + 1 < BINARY.len() {
        units /= 1024;
        step += 1;
    }
    format!("{units}{}", BINARY[step])
}

fn canonical_decimal(mut nanos: i128) -> String {
    let mut step = 0;
    while nanos % 1000 == 0 && step + 1 < DECIMAL.len() {
        nanos /= 1000;
        step += 1;
    }
    format!("{nanos}{}", DECIMAL[step].0)
}

fn canonical_exponent(mut nanos: i128) -> String {
    let mut exponent = -9;
    while nanos % 1000 == 0 {
        nanos /= 1000;
        exponent += 3;
    }
    if exponent == 0 {
        nanos.to_string()
    } else {
        format!("{nanos}e{exponent}")
    }
}
