//! Which of a pod's processes is the machine. Plain values in and out.

/// A process of a pod.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Process {
    pub(crate) pid: u32,
    /// As the kernel shows it: at most 15 bytes.
    pub(crate) name: String,
    /// The first word of its command line.
    pub(crate) program: String,
    /// It holds a virtual machine of KVM.
    pub(crate) holds_vm: bool,
}

/// Whether a process with this `/proc/<pid>/cgroup` belongs to the pod. The uid stands there with dashes, or with
/// underscores when systemd made the group.
pub(crate) fn belongs(cgroup: &str, pod_uid: &str) -> bool {
    let systemd = pod_uid.replace('-', "_");
    !pod_uid.is_empty()
        && (cgroup.contains(&format!("pod{pod_uid}")) || cgroup.contains(&format!("pod{systemd}")))
}

/// Whether a descriptor with this target is a virtual machine.
pub(crate) fn is_vm(target: &str) -> bool {
    target.contains("kvm-vm")
}

/// First by name: a process whose name starts with qemu or is one that the platform names, except that of a mere
/// launcher; then whoever holds a virtual machine; at last any process that the platform names.
pub(crate) fn choose<'p>(processes: &'p [Process], named: &[String]) -> Option<&'p Process> {
    let emulator = || {
        processes
            .iter()
            .find(|process| process.name.starts_with("qemu"))
    };
    let holder = || processes.iter().find(|process| process.holds_vm);
    let by_name = || {
        named.iter().find_map(|wanted| {
            processes.iter().find(|process| {
                process.name == cut(wanted)
                    || process.program.rsplit('/').next() == Some(wanted.as_str())
            })
        })
    };
    emulator().or_else(holder).or_else(by_name)
}

/// The kernel cuts names.
fn cut(name: &str) -> &str {
    name.get(..15).unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    const UID: &str = "5d0e1b3c-1111-4222-8333-944445555666";

    #[rstest]
    #[case(
        "0::/kubepods/burstable/pod5d0e1b3c-1111-4222-8333-944445555666/abc\n",
        true
    )]
    #[case("0::/../../pod5d0e1b3c-1111-4222-8333-944445555666/abc\n", true)]
    #[case(
        "1:cpu:/kubepods.slice/kubepods-pod5d0e1b3c_1111_4222_8333_944445555666.slice/x\n",
        true
    )]
    #[case(
        "0::/kubepods/burstable/pod00000000-1111-4222-8333-944445555666/abc\n",
        false
    )]
    #[case("0::/\n", false)]
    fn processes_are_found_by_cgroup(#[case] cgroup: &str, #[case] wanted: bool) {
        assert_eq!(belongs(cgroup, UID), wanted);
    }

    #[test]
    fn no_uid_is_no_pod() {
        assert!(!belongs("0::/kubepods/podx", ""));
    }

    fn process(pid: u32, name: &str, holds_vm: bool) -> Process {
        Process {
            pid,
            name: name.into(),
            program: format!("/usr/bin/{name}"),
            holds_vm,
        }
    }

    #[rstest]
    #[case(vec![process(1, "virt-launcher", false), process(9, "qemu-system-x86", false)], Some(9))]
    #[case(vec![process(1, "virt-launcher", false), process(9, "machine", true)], Some(9))]
    #[case(vec![process(1, "virt-launcher", true)], Some(1))]
    #[case(vec![process(1, "virt-launcher", false)], Some(1))]
    #[case(vec![process(1, "sh", false)], None)]
    fn the_machine_is_told_from_the_rest(
        #[case] processes: Vec<Process>,
        #[case] wanted: Option<u32>,
    ) {
        let named = ["qemu-system-x86_64".to_owned(), "virt-launcher".to_owned()];
        assert_eq!(
            choose(&processes, &named).map(|process| process.pid),
            wanted
        );
    }

    #[test]
    fn a_cut_name_is_still_the_name() {
        let long = Process {
            program: String::new(),
            ..process(3, "cloud-hyperviso", false)
        };
        assert!(choose(&[long], &["cloud-hypervisor".to_owned()]).is_some());
    }
}
