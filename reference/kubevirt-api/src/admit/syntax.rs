//! Names and encodings that Kubernetes has rules for.

/// What Kubernetes says of a text that is no DNS label.
pub(super) const DNS_LABEL_MESSAGE: &str = "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')";
/// What Kubernetes says of a text that is no DNS subdomain.
pub(super) const DNS_SUBDOMAIN_MESSAGE: &str = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";

fn is_label_text(text: &str) -> bool {
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    text.starts_with(plain) && text.ends_with(plain) && text.chars().all(|c| plain(c) || c == '-')
}

/// At most 63 of a-z, 0-9 and dashes inside.
pub(super) fn is_dns_label(text: &str) -> bool {
    text.len() <= 63 && is_label_text(text)
}

/// Labels with dots between, at most 253 characters.
pub(super) fn is_dns_subdomain(text: &str) -> bool {
    text.len() <= 253 && text.split('.').all(is_label_text)
}

/// A service name as of IANA: at most 15 characters, a letter among them, no double dash.
pub(super) fn is_port_name(text: &str) -> bool {
    text.len() <= 15
        && is_label_text(text)
        && text.chars().any(|c| c.is_ascii_lowercase())
        && !text.contains("--")
}

/// Length of what a base64 text decodes to; none when it is no base64.
pub(super) fn base64_len(text: &str) -> Option<usize> {
    let text: Vec<u8> = text
        .bytes()
        .filter(|c| !matches!(c, b'\r' | b'\n'))
        .collect();
    let padding = text.iter().rev().take_while(|c| **c == b'=').count();
    let body = &text[..text.len() - padding];
    let fine = body
        .iter()
        .all(|c| c.is_ascii_alphanumeric() || matches!(c, b'+' | b'/'));
    (fine && padding <= 2 && text.len().is_multiple_of(4)).then(|| text.len() / 4 * 3 - padding)
}

/// Number of bytes in a hardware address of colons, dashes or dots; none when it is none.
pub(super) fn mac_len(text: &str) -> Option<usize> {
    let (separator, digits) = match text
        .find([':', '-', '.'])
        .map(|at| (text.as_bytes()[at], at))
    {
        Some((b'.', 4)) => ('.', 4),
        Some((b':', 2)) => (':', 2),
        Some((b'-', 2)) => ('-', 2),
        _ => return None,
    };
    let parts: Vec<&str> = text.split(separator).collect();
    let hex = |part: &&str| part.len() == digits && part.bytes().all(|c| c.is_ascii_hexdigit());
    let bytes = parts.len() * digits / 2;
    (parts.iter().all(hex) && matches!(bytes, 6 | 8 | 20)).then_some(bytes)
}

/// A PCI address such as `0000:81:01.0`.
pub(super) fn is_pci_address(text: &str) -> bool {
    let hex =
        |part: &str, len: usize| part.len() == len && part.bytes().all(|c| c.is_ascii_hexdigit());
    let Some((rest, function)) = text.rsplit_once('.') else {
        return false;
    };
    let parts: Vec<&str> = rest.split(':').collect();
    let [domain, bus, slot] = parts.as_slice() else {
        return false;
    };
    hex(domain, 4) && hex(bus, 2) && hex(slot, 2) && matches!(function.as_bytes(), [b'0'..=b'7'])
}

/// Whether a text fits a pattern in which `*` stands for anything.
pub(super) fn matches_glob(pattern: &str, text: &str) -> bool {
    match pattern.split_once('*') {
        None => pattern == text,
        Some((start, rest)) => text.strip_prefix(start).is_some_and(|tail| {
            rest.is_empty()
                || tail
                    .char_indices()
                    .map(|(at, _)| at)
                    .chain([tail.len()])
                    .any(|at| matches_glob(rest, &tail[at..]))
        }),
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("a-1", true)]
    #[case("-a", false)]
    #[case("A", false)]
    #[case("", false)]
    #[case(&"a".repeat(64), false)]
    fn dns_labels(#[case] text: &str, #[case] fine: bool) {
        assert_eq!(is_dns_label(text), fine);
    }

    #[rstest]
    #[case("http-1", true)]
    #[case("123", false)]
    #[case("a--b", false)]
    #[case("sixteen-letters-", false)]
    fn port_names(#[case] text: &str, #[case] fine: bool) {
        assert_eq!(is_port_name(text), fine);
    }

    #[rstest]
    #[case("aGFsbG8=", Some(5))]
    #[case("aGFs\nbG8=", Some(5))]
    #[case("", Some(0))]
    #[case("a", None)]
    #[case("====", None)]
    #[case("!!!!", None)]
    fn base64(#[case] text: &str, #[case] len: Option<usize>) {
        assert_eq!(base64_len(text), len);
    }

    #[rstest]
    #[case("de:ad:00:00:be:af", Some(6))]
    #[case("de-ad-00-00-be-aa-bb-cc", Some(8))]
    #[case("dead.0000.beaf", Some(6))]
    #[case("de:ad:00:00:be", None)]
    #[case("de:ad:00:00:be:xx", None)]
    fn hardware_addresses(#[case] text: &str, #[case] len: Option<usize>) {
        assert_eq!(mac_len(text), len);
    }

    #[rstest]
    #[case("q35*", "q35", true)]
    #[case("q35*", "pc-q35-9.2", false)]
    #[case("pc-*-9*", "pc-q35-9.2", true)]
    #[case("*", "", true)]
    #[case("q35", "q35x", false)]
    fn globs(#[case] pattern: &str, #[case] text: &str, #[case] fits: bool) {
        assert_eq!(matches_glob(pattern, text), fits);
    }

    #[rstest]
    #[case("0000:81:01.0", true)]
    #[case("0000:81:01.8", false)]
    #[case("81:01.0", false)]
    fn pci_addresses(#[case] text: &str, #[case] fine: bool) {
        assert_eq!(is_pci_address(text), fine);
    }
}
