//! Rules on memory.

use k8s_openapi::apimachinery::pkg::api::resource::Quantity as WireQuantity;

use super::{Candidate, Cause, Field, Reason, Rule};
use crate::quantity::Quantity;

pub(super) const RULES: &[Rule] = &[
    request_is_not_negative,
    request_is_not_tiny,
    limit_is_not_negative,
    request_is_within_limit,
    page_size_is_a_quantity,
    request_holds_whole_pages,
];

/// The smallest request that is served.
const SMALLEST: i128 = 1_000_000;

fn read(wire: Option<&WireQuantity>) -> Option<Quantity> {
    Quantity::try_from(wire?).ok()
}

fn request(c: &Candidate<'_>) -> Option<Quantity> {
    read(c.spec.domain.resources.request("memory"))
}

fn limit(c: &Candidate<'_>) -> Option<Quantity> {
    read(c.spec.domain.resources.limit("memory"))
}

fn request_field(c: &Candidate<'_>) -> Field {
    c.root.child("domain.resources.requests.memory")
}

fn limit_field(c: &Candidate<'_>) -> Field {
    c.root.child("domain.resources.limits.memory")
}

pub(super) fn not_negative(field: &Field, quantity: Option<Quantity>) -> Vec<Cause> {
    match quantity {
        Some(quantity) if quantity.is_negative() => vec![Cause::invalid(
            field,
            format!("{field} '{quantity}': must be greater than or equal to 0."),
        )],
        _ => vec![],
    }
}

/// 5: the request is not negative.
fn request_is_not_negative(c: &Candidate<'_>) -> Vec<Cause> {
    not_negative(&request_field(c), request(c))
}

/// 6: a request below 1M is a forgotten unit.
fn request_is_not_tiny(c: &Candidate<'_>) -> Vec<Cause> {
    match request(c) {
        Some(size) if size > Quantity::ZERO && size.bytes_ceil() < SMALLEST => {
            let field = request_field(c);
            let message = format!("{field} '{size}': must be greater than or equal to 1M.");
            vec![Cause::invalid(&field, message)]
        }
        _ => vec![],
    }
}

/// 7: the limit is not negative.
fn limit_is_not_negative(c: &Candidate<'_>) -> Vec<Cause> {
    not_negative(&limit_field(c), limit(c))
}

/// 8: the request is within the limit.
fn request_is_within_limit(c: &Candidate<'_>) -> Vec<Cause> {
    match (request(c), limit(c)) {
        (Some(request), Some(limit)) if limit > Quantity::ZERO && request > limit => {
            let (field, other) = (request_field(c), limit_field(c));
            let message = format!("{field} '{request}' is greater than {other} '{limit}'");
            vec![Cause::invalid(&field, message)]
        }
        _ => vec![],
    }
}

fn page_size<'a>(c: &Candidate<'a>) -> Option<&'a str> {
    let memory = c.spec.domain.memory.as_ref()?;
    memory.hugepages.as_ref()?.page_size.as_deref()
}

fn page_field(c: &Candidate<'_>) -> Field {
    c.root.child("domain.memory.hugepages.pageSize")
}

/// 10: the size of huge pages is a quantity.
fn page_size_is_a_quantity(c: &Candidate<'_>) -> Vec<Cause> {
    let Some(text) = page_size(c) else {
        return vec![];
    };
    match Quantity::parse(text) {
        Ok(_) => vec![],
        Err(error) => {
            let field = page_field(c);
            vec![Cause::invalid(&field, format!("{field} '{text}': {error}"))]
        }
    }
}

/// 11, 12: the request is at least one huge page, and a whole number of them.
fn request_holds_whole_pages(c: &Candidate<'_>) -> Vec<Cause> {
    let page = page_size(c).and_then(|text| Quantity::parse(text).ok());
    let (Some(page), Some(request)) = (page, request(c)) else {
        return vec![];
    };
    if page <= Quantity::ZERO || request.is_zero() {
        return vec![];
    }
    let (field, other) = (request_field(c), page_field(c));
    if request < page {
        let message = format!(
            "{field} '{request}' must be equal to or larger than page size {other} '{page}'"
        );
        vec![Cause::invalid(&field, message)]
    } else if request.nano_value() % page.nano_value() != 0 {
        let message =
            format!("{field} '{request}' is not a multiple of the page size {other} '{page}'");
        vec![Cause::invalid(&field, message)]
    } else {
        vec![]
    }
}

/// 9, for VMIs only: some memory is asked for, in one way or another.
pub(super) fn some_is_requested(c: &Candidate<'_>) -> Vec<Cause> {
    let memory = c.spec.domain.memory.as_ref();
    let has_guest = memory.is_some_and(|m| m.guest.is_some());
    let has_pages = memory.is_some_and(|m| m.hugepages.is_some());
    if has_guest || has_pages || request(c).is_some_and(|size| !size.is_zero()) {
        return vec![];
    }
    let root = c.root;
    vec![Cause {
        reason: Some(Reason::Required),
        message: format!(
            "no memory requested, at least one of '{root}.domain.memory.guest', '{root}.domain.memory.hugepages.pageSize' or '{root}.domain.resources.requests.memory' must be set"
        ),
        field: None,
    }]
}
