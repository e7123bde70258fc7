//! Cuts a serial stream into lines for the log.

/// Longer lines are cut: a guest without line ends must not fill our memory.
const LONGEST: usize = 4096;

/// Collects bytes until a line is complete.
#[derive(Default)]
pub(super) struct LineAssembler {
    partial: Vec<u8>,
}

impl LineAssembler {
    /// Adds bytes and hands out every line that they complete, without its line end.
    pub(super) fn push(&mut self, bytes: &[u8], mut emit: impl FnMut(String)) {
        for &byte in bytes {
            match byte {
                b'\n' => self.finish(&mut emit),
                b'\r' => {}
                byte => {
                    self.partial.push(byte);
                    if self.partial.len() == LONGEST {
                        self.finish(&mut emit);
                    }
                }
            }
        }
    }

    /// Hands out an unfinished line, if any.
    pub(super) fn finish(&mut self, mut emit: impl FnMut(String)) {
        if !self.partial.is_empty() {
            emit(String::from_utf8_lossy(&self.partial).into_owned());
            self.partial.clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case::two_lines(&[b"one\r\ntwo\n".as_slice()], &["one", "two"])]
    #[case::in_pieces(&[b"o".as_slice(), b"n", b"e\nt"], &["one", "t"])]
    #[case::empty_lines_vanish(&[b"\n\r\n\n".as_slice()], &[])]
    #[case::not_text(&[b"a\xffb\n".as_slice()], &["a\u{fffd}b"])]
    fn lines(#[case] pieces: &[&[u8]], #[case] expected: &[&str]) {
        let mut assembler = LineAssembler::default();
        let mut lines = Vec::new();
        for piece in pieces {
            assembler.push(piece, |line| lines.push(line));
        }
        assembler.finish(|line| lines.push(line));
        assert_eq!(lines, expected);
    }

    #[test]
    fn an_endless_line_is_cut() {
        let mut lines = Vec::new();
        LineAssembler::default().push(&[b'x'; 2 * LONGEST + 1], |line| lines.push(line.len()));
        assert_eq!(lines, [LONGEST; 2]);
    }
}
