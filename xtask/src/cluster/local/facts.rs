//! Looking at the host instead of assuming things about it.

use super::{cgroup, config::HostFacts};

/// Bit of CAP_SYS_RESOURCE in a capability set.
const CAP_SYS_RESOURCE: u32 = 24;

/// What this host is like.
pub fn find() -> HostFacts {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    HostFacts {
        cgroup_v2: cgroup::is_v2(),
        sys_resource: has_capability(&status, CAP_SYS_RESOURCE),
    }
}

fn has_capability(status: &str, bit: u32) -> bool {
    status
        .lines()
        .find_map(|line| line.strip_prefix("CapEff:"))
        .and_then(|hex| u64::from_str_radix(hex.trim(), 16).ok())
        .is_some_and(|set| set >> bit & 1 == 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_the_effective_set() {
        assert!(has_capability("Name:\tx\nCapEff:\t0000000001000000\n", 24));
        assert!(!has_capability("Name:\tx\nCapEff:\t0000000000ffffff\n", 24));
        assert!(!has_capability("", 24));
    }
}
