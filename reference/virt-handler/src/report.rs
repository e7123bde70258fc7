//! An error and its causes as one line, for logs: messages themselves never repeat their causes.

use std::error::Error;

/// `outer: cause: its cause`.
pub(crate) fn chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text.push_str(": ");
        text.push_str(&error.to_string());
        cause = error.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("failed to open the door")]
    struct Outer(#[source] std::io::Error);

    #[test]
    fn causes_follow_the_error() {
        let error = Outer(std::io::Error::other("no key"));
        assert_eq!(chain(&error), "failed to open the door: no key");
    }
}
