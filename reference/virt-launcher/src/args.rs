//! The command line, as virt-controller writes it into the pod.

use std::{path::PathBuf, time::Duration};

use clap::Parser;
use virt_cmd::paths::{LauncherPaths, POD_RUN_DIR, TERMINATION_LOG};

const EXAMPLES: &str = "\
Examples:
  As virt-controller starts it in a pod:
    virt-launcher --name web --namespace shop --uid 0f8e6c1c-5a0f-4d7a-9a83-2b1f0a3f5c11 --grace-period-seconds 45

  On a node without hardware virtualization:
    virt-launcher --name web --namespace shop --uid 0f8e6c1c-5a0f-4d7a-9a83-2b1f0a3f5c11 --allow-emulation

It then waits for virt-handler on the socket kubevirt/sockets/launcher-sock below its run directory.

Exit codes: 0 powered off or forced off, 65 guest panic, 66 guest stuck, 70 the machine or the launcher
failed, 137 the machine was killed. The termination message says the same as one line of JSON.";

/// Runs one virtual machine instance and ends with it.
#[derive(Debug, Parser)]
#[command(version, after_help = EXAMPLES)]
pub(crate) struct Args {
    /// Name of the VirtualMachineInstance.
    #[arg(long)]
    pub(crate) name: String,

    /// Namespace of the VirtualMachineInstance.
    #[arg(long)]
    pub(crate) namespace: String,

    /// Uid of the VirtualMachineInstance; orders for any other are refused.
    #[arg(long)]
    pub(crate) uid: String,

    /// How long the guest may take to power off when the pod is deleted.
    #[arg(long, value_name = "SECONDS", default_value_t = 30)]
    grace_period_seconds: u32,

    /// Emulate the processor when /dev/kvm cannot be used.
    #[arg(long)]
    pub(crate) allow_emulation: bool,

    /// Directory of the sockets and of the scratch files.
    #[arg(long, value_name = "DIR", default_value = POD_RUN_DIR, hide = true)]
    run_dir: PathBuf,

    /// The QEMU program.
    #[arg(
        long,
        value_name = "FILE",
        default_value = "/usr/bin/qemu-system-x86_64",
        hide = true
    )]
    pub(crate) qemu: PathBuf,

    /// The KVM device.
    #[arg(long, value_name = "FILE", default_value = "/dev/kvm", hide = true)]
    pub(crate) kvm: PathBuf,

    /// Where the termination message goes.
    #[arg(long, value_name = "FILE", default_value = TERMINATION_LOG, hide = true)]
    pub(crate) termination_log: PathBuf,
}

impl Args {
    /// Where the pod's volumes are.
    pub(crate) fn paths(&self) -> LauncherPaths {
        LauncherPaths::in_pod(&self.run_dir)
    }

    /// The grace period of a deleted pod.
    pub(crate) fn grace(&self) -> Duration {
        Duration::from_secs(self.grace_period_seconds.into())
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_command_line_of_the_pod_is_understood() {
        let line = "/usr/bin/virt-launcher --name n --uid u --namespace s --grace-period-seconds 45 --allow-emulation";
        let args = Args::try_parse_from(line.split(' ')).unwrap();
        assert_eq!(
            (args.grace(), args.allow_emulation),
            (Duration::from_secs(45), true)
        );
        assert_eq!(args.paths(), LauncherPaths::in_pod(POD_RUN_DIR.as_ref()));
    }

    #[test]
    fn the_help_is_complete() {
        insta::assert_snapshot!(Args::command().term_width(100).render_long_help());
    }
}
