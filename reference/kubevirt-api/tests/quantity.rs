//! Quantities behave as those of Kubernetes: a table made with its own implementation, and laws.

use kubevirt_api::quantity::{Format, Quantity};
use proptest::prelude::*;
use rstest::rstest;

const TABLE: &str = include_str!("fixtures/quantities.tsv");

#[test]
fn every_row_of_the_table_holds() {
    let mut rows = 0;
    for line in TABLE.lines().filter(|line| !line.starts_with('#')) {
        rows += 1;
        let columns: Vec<&str> = line.split('\t').collect();
        match (columns.as_slice(), Quantity::parse(columns[0])) {
            ([text, "error", message], Err(error)) => {
                assert_eq!(error.to_string(), *message, "{text:?}");
            }
            ([text, canonical, value, millis], Ok(quantity)) => {
                assert_eq!(quantity.to_string(), *canonical, "{text:?}");
                if *value != "-" {
                    assert_eq!(quantity.value().to_string(), *value, "{text:?}");
                    assert_eq!(quantity.milli_value().to_string(), *millis, "{text:?}");
                }
            }
            (row, answer) => panic!("{row:?} gave {answer:?}"),
        }
    }
    assert!(rows > 100, "the table is there: {rows} rows");
}

#[rstest]
#[case("1Gi", "1024Mi", true)]
#[case("1G", "1Gi", false)]
#[case("1000m", "1", true)]
#[case("1e3", "1k", true)]
#[case(" 64Mi ", "64Mi", true)]
fn equality_looks_at_the_amount(#[case] a: &str, #[case] b: &str, #[case] equal: bool) {
    assert_eq!(parse(a) == parse(b), equal);
}

#[rstest]
#[case("128Mi", "274688Ki", "405760Ki", "-143616Ki")]
#[case("0", "1Ki", "1Ki", "-1Ki")]
#[case("1", "500m", "1500m", "500m")]
#[case("1Gi", "1", "1073741825", "1073741823")]
fn sums_keep_the_form(
    #[case] a: &str,
    #[case] b: &str,
    #[case] sum: &str,
    #[case] difference: &str,
) {
    assert_eq!((parse(a) + parse(b)).to_string(), sum);
    assert_eq!((parse(a) - parse(b)).to_string(), difference);
}

#[test]
fn out_of_range_is_an_error_and_not_a_wrong_number() {
    let many = "9".repeat(60);
    for text in [many.as_str(), "1e40", "1e99999999"] {
        assert!(Quantity::parse(text).is_err(), "{text}");
    }
}

#[expect(clippy::unwrap_used, reason = "a helper of tests")]
fn parse(text: &str) -> Quantity {
    Quantity::parse(text).unwrap()
}

proptest! {
    #[test]
    fn canonical_form_reads_back_as_the_same_amount(
        units in any::<i64>(),
        format in prop::sample::select(vec![Format::BinarySi, Format::DecimalSi, Format::DecimalExponent]),
    ) {
        let quantity = Quantity::from_units(units, format);
        let text = quantity.to_string();
        let again = parse(&text);
        // The smallest i64 has no positive twin, and binary values are capped at the largest.
        prop_assert!(again == quantity || units == i64::MIN, "{text}");
        prop_assert_eq!(again.to_string(), text);
    }

    #[test]
    fn no_text_makes_it_panic(text in "[-+]?[0-9.]{0,30}[eEinumkKMGTP]{0,3}[-+]?[0-9]{0,4}") {
        let _ = Quantity::parse(&text);
    }

    #[test]
    fn value_rounds_up(millis in any::<i32>()) {
        let quantity = Quantity::from_millis(i64::from(millis));
        let value = quantity.value();
        prop_assert!(value * 1000 >= i128::from(millis) && (value - 1) * 1000 < i128::from(millis));
    }
}
