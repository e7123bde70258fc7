//! Who takes part, and how each is started: the same guest, the same memory, one vCPU, the serial line on a pipe, and
//! the same end (the debug-exit port), so that only the machine differs.

use std::path::{Path, PathBuf};
use std::{fmt, str::FromStr};

use anyhow::Context;

/// Our own machine, which every other is compared to.
pub(crate) const OWN: Candidate = Candidate::Own;

/// A way to run the probe.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Candidate {
    Own,
    QemuMicrovmKvm,
    QemuMicrovmTcg,
    QemuPcTcg,
    QemuPcKvm,
}

const ALL: [Candidate; 5] = [
    Candidate::Own,
    Candidate::QemuMicrovmKvm,
    Candidate::QemuMicrovmTcg,
    Candidate::QemuPcTcg,
    Candidate::QemuPcKvm,
];

/// What is the same for all candidates.
#[derive(Debug)]
pub(crate) struct Setting {
    probe: PathBuf,
    memory_mib: u64,
    /// The program around our own machine; it is built beside this one.
    own: PathBuf,
}

impl Setting {
    pub(crate) fn new(probe: &Path, memory_mib: u64) -> anyhow::Result<Self> {
        let probe = probe
            .canonicalize()
            .with_context(|| format!("no probe at {}", probe.display()))?;
        let this = std::env::current_exe().context("failed to find this program's own path")?;
        Ok(Self {
            probe,
            memory_mib,
            own: this.with_file_name("boot-own"),
        })
    }
}

/// A program and its arguments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CommandLine {
    pub(crate) program: PathBuf,
    pub(crate) arguments: Vec<String>,
    /// The status that says that the guest ended as it was told.
    pub(crate) good_status: i32,
}

impl Candidate {
    /// Those that run when nothing else is asked for. Firmware under an emulated KVM takes seconds, so that one is not.
    pub(crate) fn usual() -> Vec<Candidate> {
        ALL.into_iter()
            .filter(|candidate| *candidate != Candidate::QemuPcKvm)
            .collect()
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Candidate::Own => "own",
            Candidate::QemuMicrovmKvm => "qemu-microvm-kvm",
            Candidate::QemuMicrovmTcg => "qemu-microvm-tcg",
            Candidate::QemuPcTcg => "qemu-pc-tcg",
            Candidate::QemuPcKvm => "qemu-pc-kvm",
        }
    }

    pub(crate) fn command(self, setting: &Setting) -> CommandLine {
        match self {
            Candidate::Own => own(setting),
            Candidate::QemuMicrovmKvm => qemu(setting, "microvm,acpi=off", "kvm"),
            Candidate::QemuMicrovmTcg => qemu(setting, "microvm,acpi=off", "tcg"),
            Candidate::QemuPcTcg => qemu(setting, "pc", "tcg"),
            Candidate::QemuPcKvm => qemu(setting, "pc", "kvm"),
        }
    }
}

const GUEST_OPTIONS: &str = "off=exit";

fn own(setting: &Setting) -> CommandLine {
    let memory = (setting.memory_mib << 20).to_string();
    let arguments = vec![
        setting.probe.display().to_string(),
        memory,
        GUEST_OPTIONS.to_owned(),
    ];
    CommandLine {
        program: setting.own.clone(),
        arguments,
        good_status: 0,
    }
}

fn qemu(setting: &Setting, machine: &str, accelerator: &str) -> CommandLine {
    let memory = setting.memory_mib.to_string();
    let probe = setting.probe.display().to_string();
    let arguments = [
        ["-M", machine],
        ["-accel", accelerator],
        ["-m", &memory],
        ["-display", "none"],
        ["-serial", "stdio"],
        ["-device", "isa-debug-exit,iobase=0xf4"],
        ["-kernel", &probe],
        ["-append", GUEST_OPTIONS],
    ];
    let flags = ["-nodefaults", "-no-user-config", "-no-reboot"];
    CommandLine {
        program: PathBuf::from("qemu-system-x86_64"),
        arguments: flags
            .into_iter()
            .chain(arguments.into_iter().flatten())
            .map(str::to_owned)
            .collect(),
        // The device's exit status for a guest that wrote zero.
        good_status: 1,
    }
}

impl fmt::Display for Candidate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Candidate {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let names = || ALL.map(Candidate::name).join(", ");
        ALL.into_iter()
            .find(|candidate| candidate.name() == name)
            .ok_or_else(|| format!("the candidates are {}", names()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn setting() -> Setting {
        Setting {
            probe: "/probe".into(),
            memory_mib: 128,
            own: "/bin/boot-own".into(),
        }
    }

    #[test]
    fn every_candidate_boots_the_same_guest_the_same_way() {
        for candidate in ALL {
            let line = candidate.command(&setting());
            assert!(line.arguments.contains(&"/probe".to_owned()), "{candidate}");
            assert!(
                line.arguments.contains(&GUEST_OPTIONS.to_owned()),
                "{candidate}"
            );
            assert_eq!(candidate.name().parse(), Ok(candidate));
        }
    }

    #[test]
    fn qemu_is_told_machine_and_accelerator() {
        let line = Candidate::QemuPcTcg.command(&setting()).arguments.join(" ");
        assert!(line.contains("-M pc -accel tcg -m 128 "), "{line}");
    }

    #[test]
    fn a_wrong_name_lists_the_right_ones() {
        let error = "qemu".parse::<Candidate>().expect_err("no such candidate");
        assert!(
            error.starts_with("the candidates are own, qemu-microvm-kvm"),
            "{error}"
        );
    }
}
