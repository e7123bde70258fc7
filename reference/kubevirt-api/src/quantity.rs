//! Exact resource quantities: `128Mi`, `1500m`, `1e3`, with the rules of Kubernetes.
//!
//! A value is a whole number of nano units in 128 bits, so nothing is ever rounded that Kubernetes
//! does not round as well. Values beyond 1.7e29 are refused instead of held.

use std::{
    cmp::Ordering,
    fmt,
    ops::{Add, Sub},
    str::FromStr,
};

use k8s_openapi::apimachinery::pkg::api::resource::Quantity as WireQuantity;
use thiserror::Error;

mod text;

/// Nano units in one.
const NANO: i128 = 1_000_000_000;
/// Largest value with a binary suffix; larger ones count as this.
const BINARY_MAX: i128 = (i64::MAX as i128) * NANO;

/// Why a text is no quantity. The wording is that of Kubernetes, since users look it up.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub enum QuantityError {
    /// Not a number with a suffix.
    #[error(
        "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
    )]
    Format,
    /// The number is fine, the suffix is not.
    #[error("unable to parse quantity's suffix")]
    Suffix,
    /// More digits or a larger value than this type holds.
    #[error("quantity is out of range")]
    Range,
}

/// How a quantity likes to be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// `1500m`, `2k`, `3M`.
    DecimalSi,
    /// `2Ki`, `3Mi`.
    BinarySi,
    /// `1e3`.
    DecimalExponent,
}

/// An exact amount of some resource. Equality and order look at the amount, not at the spelling.
#[derive(Clone, Copy, Debug)]
pub struct Quantity {
    nanos: i128,
    format: Format,
}

impl Quantity {
    /// Nothing.
    pub const ZERO: Self = Self {
        nanos: 0,
        format: Format::DecimalSi,
    };

    /// Reads a quantity; blanks around it do not count.
    pub fn parse(text: &str) -> Result<Self, QuantityError> {
        text::parse(text.trim())
    }

    /// A whole number of units, written in the given form.
    #[must_use]
    pub fn from_units(units: i64, format: Format) -> Self {
        Self {
            nanos: i128::from(units) * NANO,
            format,
        }
    }

    /// A whole number of bytes, written with binary suffixes.
    #[must_use]
    pub fn from_bytes(bytes: i64) -> Self {
        Self::from_units(bytes, Format::BinarySi)
    }

    /// A number of thousandths, written with decimal suffixes.
    #[must_use]
    pub fn from_millis(millis: i64) -> Self {
        Self {
            nanos: i128::from(millis) * (NANO / 1000),
            format: Format::DecimalSi,
        }
    }

    /// The amount in units, rounded up.
    #[must_use]
    pub fn value(&self) -> i128 {
        div_ceil(self.nanos, NANO)
    }

    /// The amount in bytes, rounded up; the same as [`Self::value`] and says what is meant.
    #[must_use]
    pub fn bytes_ceil(&self) -> i128 {
        self.value()
    }

    /// The amount in thousandths, rounded up.
    #[must_use]
    pub fn milli_value(&self) -> i128 {
        div_ceil(self.nanos, NANO / 1000)
    }

    /// The amount in nano units, exact.
    #[must_use]
    pub fn nano_value(&self) -> i128 {
        self.nanos
    }

    /// How it likes to be written.
    #[must_use]
    pub fn format(&self) -> Format {
        self.format
    }

    /// Whether it is nothing.
    #[must_use]
    pub fn is_zero(&self) -> bool {
        self.nanos == 0
    }

    /// Whether it is less than nothing.
    #[must_use]
    pub fn is_negative(&self) -> bool {
        self.nanos < 0
    }

    /// Whether it is a whole number of units.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        self.nanos % NANO == 0
    }

    /// The canonical spelling as the wire type.
    #[must_use]
    pub fn to_wire(&self) -> WireQuantity {
        WireQuantity(self.to_string())
    }

    fn combine(self, other: Self, nanos: i128) -> Self {
        // Kubernetes lets zero take on the form of what is added to it.
        let format = if self.is_zero() {
            other.format
        } else {
            self.format
        };
        Self { nanos, format }
    }
}

fn div_ceil(value: i128, by: i128) -> i128 {
    value.div_euclid(by) + i128::from(value.rem_euclid(by) != 0)
}

impl Add for Quantity {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        self.combine(other, self.nanos.saturating_add(other.nanos))
    }
}

impl Sub for Quantity {
    type Output = Self;

    fn sub(self, other: Self) -> Self {
        self.combine(other, self.nanos.saturating_sub(other.nanos))
    }
}

impl PartialEq for Quantity {
    fn eq(&self, other: &Self) -> bool {
        self.nanos == other.nanos
    }
}

impl Eq for Quantity {}

impl PartialOrd for Quantity {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Quantity {
    fn cmp(&self, other: &Self) -> Ordering {
        self.nanos.cmp(&other.nanos)
    }
}

impl FromStr for Quantity {
    type Err = QuantityError;

    fn from_str(text: &str) -> Result<Self, QuantityError> {
        Self::parse(text)
    }
}

impl TryFrom<&WireQuantity> for Quantity {
    type Error = QuantityError;

    fn try_from(wire: &WireQuantity) -> Result<Self, QuantityError> {
        Self::parse(&wire.0)
    }
}

impl fmt::Display for Quantity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&text::canonical(*self))
    }
}
