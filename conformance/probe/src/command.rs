//! The commands of the serial line and the options of the command line.

/// How the guest can end or start anew.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// ACPI S5.
    PowerOff,
    /// Reset by the keyboard controller.
    Keyboard,
    /// Reset by port 0xCF9.
    Cf9,
    /// Reset by a triple fault.
    TripleFault,
    /// Halt with interrupts off.
    Halt,
    /// Report a panic, then halt.
    Panic,
    /// Leave through the debug-exit port.
    Exit(u8),
}

/// One line from the serial port.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Command<'a> {
    /// Say it again.
    Echo(&'a [u8]),
    /// Who and where am I.
    Ident,
    /// How long do I run.
    Uptime,
    /// How much memory do I have.
    Mem,
    /// End.
    End(End),
    /// Whether to ignore the power button.
    IgnoreAcpi(bool),
    /// Keep the CPU busy for so many milliseconds.
    Spin(u64),
    /// Nothing, answered by nothing.
    Empty,
    /// A command that does not exist or whose argument is wrong.
    Unknown(&'a [u8]),
}

/// Reads a line without its newline; a carriage return at its end is ignored.
pub fn parse(line: &[u8]) -> Command<'_> {
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    let (word, rest) = match line.iter().position(|byte| *byte == b' ') {
        Some(at) => (&line[..at], &line[at + 1..]),
        None => (line, &line[line.len()..]),
    };
    let known = match (word, rest) {
        (b"", b"") => Some(Command::Empty),
        (b"echo", text) => Some(Command::Echo(text)),
        (b"ident", b"") => Some(Command::Ident),
        (b"uptime", b"") => Some(Command::Uptime),
        (b"mem", b"") => Some(Command::Mem),
        (b"ignore-acpi", b"on") => Some(Command::IgnoreAcpi(true)),
        (b"ignore-acpi", b"off") => Some(Command::IgnoreAcpi(false)),
        (b"spin", number) => decimal(number).map(Command::Spin),
        (b"reboot", b"kbd") => Some(Command::End(End::Keyboard)),
        (b"reboot", b"cf9") => Some(Command::End(End::Cf9)),
        (b"reboot", b"triple") => Some(Command::End(End::TripleFault)),
        (b"poweroff", b"") => Some(Command::End(End::PowerOff)),
        (b"halt", b"") => Some(Command::End(End::Halt)),
        (b"panic", b"") => Some(Command::End(End::Panic)),
        (b"exit", code) => exit(code).map(Command::End),
        _ => None,
    };
    known.unwrap_or(Command::Unknown(line))
}

/// The end that `off=<end>` on the command line asks for; `Err` holds a word that names none.
pub fn off_option(cmdline: &[u8]) -> Option<Result<End, &[u8]>> {
    let word = cmdline
        .split(|byte| *byte == b' ')
        .find_map(|word| word.strip_prefix(b"off="))?;
    let end = match word {
        b"poweroff" => End::PowerOff,
        b"kbd" => End::Keyboard,
        b"cf9" => End::Cf9,
        b"triple" => End::TripleFault,
        b"halt" => End::Halt,
        b"panic" => End::Panic,
        b"exit" => End::Exit(0),
        _ => return Some(Err(word)),
    };
    Some(Ok(end))
}

fn exit(code: &[u8]) -> Option<End> {
    u8::try_from(decimal(code)?).ok().map(End::Exit)
}

/// At least one digit and nothing else, without overflow.
fn decimal(digits: &[u8]) -> Option<u64> {
    if digits.is_empty() {
        return None;
    }
    digits.iter().try_fold(0u64, |number, digit| {
        let value = digit.is_ascii_digit().then(|| u64::from(digit - b'0'))?;
        number.checked_mul(10)?.checked_add(value)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_is_known() {
        let table: &[(&[u8], Command<'_>)] = &[
            (b"", Command::Empty),
            (b"\r", Command::Empty),
            (b"echo", Command::Echo(b"")),
            (b"echo  two  spaces", Command::Echo(b" two  spaces")),
            (b"ident\r", Command::Ident),
            (b"uptime", Command::Uptime),
            (b"mem", Command::Mem),
            (b"poweroff", Command::End(End::PowerOff)),
            (b"reboot kbd", Command::End(End::Keyboard)),
            (b"reboot cf9", Command::End(End::Cf9)),
            (b"reboot triple", Command::End(End::TripleFault)),
            (b"halt", Command::End(End::Halt)),
            (b"panic", Command::End(End::Panic)),
            (b"exit 7", Command::End(End::Exit(7))),
            (b"ignore-acpi on", Command::IgnoreAcpi(true)),
            (b"ignore-acpi off", Command::IgnoreAcpi(false)),
            (b"spin 250", Command::Spin(250)),
        ];
        for (line, command) in table {
            assert_eq!(parse(line), *command, "{}", String::from_utf8_lossy(line));
        }
    }

    #[test]
    fn anything_else_is_named_as_it_came() {
        for line in [
            "reboot",
            "reboot now",
            "spin",
            "spin 1x",
            "spin 99999999999999999999",
            "exit 256",
            "POWEROFF",
            " echo",
        ] {
            assert_eq!(parse(line.as_bytes()), Command::Unknown(line.as_bytes()));
        }
    }

    #[test]
    fn off_is_found_among_other_options() {
        assert_eq!(
            off_option(b"console=ttyS0 off=cf9 quiet"),
            Some(Ok(End::Cf9))
        );
        assert_eq!(off_option(b"off=poweroff"), Some(Ok(End::PowerOff)));
        assert_eq!(off_option(b"takeoff=cf9"), None);
        assert_eq!(off_option(b""), None);
        assert_eq!(
            off_option(b"off=sideways"),
            Some(Err(b"sideways".as_slice()))
        );
    }
}
