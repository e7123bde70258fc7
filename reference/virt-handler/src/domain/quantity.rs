//! The quantities that a machine is built from, as whole numbers: rounded up, never silently wrong.

use k8s_openapi::apimachinery::pkg::api::resource::Quantity as WireQuantity;
use kubevirt_api::quantity::{Quantity, QuantityError};

/// A quantity that cannot be used.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadQuantity {
    /// It is no quantity at all.
    #[error("{0:?} is no quantity")]
    Unreadable(String, #[source] QuantityError),
    /// It is negative, or too large for a machine.
    #[error("the quantity {0} is out of range")]
    Range(String),
}

const MIB: i128 = 1 << 20;

/// Bytes, rounded up to a whole MiB as the guest gets them.
pub fn memory_bytes(quantity: &WireQuantity) -> Result<u64, BadQuantity> {
    let bytes = read(quantity)?.bytes_ceil();
    let rest = bytes.rem_euclid(MIB);
    let rounded = if rest == 0 { bytes } else { bytes - rest + MIB };
    u64::try_from(rounded).map_err(|_| BadQuantity::Range(quantity.0.clone()))
}

/// A count such as processors, rounded up to a whole one.
pub fn count(quantity: &WireQuantity) -> Result<u32, BadQuantity> {
    let count = read(quantity)?.value();
    u32::try_from(count).map_err(|_| BadQuantity::Range(quantity.0.clone()))
}

fn read(quantity: &WireQuantity) -> Result<Quantity, BadQuantity> {
    Quantity::try_from(quantity).map_err(|error| BadQuantity::Unreadable(quantity.0.clone(), error))
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
    #[case("0", 0)]
    #[case("1073741825", 1025 << 20)]
    fn memory_is_rounded_up_to_a_mebibyte(#[case] text: &str, #[case] bytes: u64) {
        assert_eq!(memory_bytes(&WireQuantity(text.to_owned())), Ok(bytes));
    }

    #[rstest]
    #[case("2", 2)]
    #[case("500m", 1)]
    #[case("1500m", 2)]
    fn processors_are_rounded_up(#[case] text: &str, #[case] n: u32) {
        assert_eq!(count(&WireQuantity(text.to_owned())), Ok(n));
    }

    #[rstest]
    #[case("-1Gi")]
    #[case("many")]
    #[case("")]
    fn nonsense_is_an_error(#[case] text: &str) {
        assert!(memory_bytes(&WireQuantity(text.to_owned())).is_err());
        assert!(count(&WireQuantity(text.to_owned())).is_err());
    }
}
