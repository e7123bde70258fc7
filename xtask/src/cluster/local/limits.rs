//! Limits of the kernel that are too low for several clusters on one host.

use std::fs;

use crate::progress::say;

const INSTANCES: &str = "/proc/sys/fs/inotify/max_user_instances";
/// Each node's programs hold about 15; a kubelet that gets none does not start.
const ENOUGH: u32 = 1024;

/// Raises what is too low, until the next boot, and says so. A host that does not let us may still
/// have room for this cluster.
pub fn raise() {
    let now: Option<u32> = fs::read_to_string(INSTANCES)
        .ok()
        .and_then(|text| text.trim().parse().ok());
    if let Some(now) = now.filter(|now| *now < ENOUGH)
        && fs::write(INSTANCES, ENOUGH.to_string()).is_ok()
    {
        say!("raised fs.inotify.max_user_instances from {now} to {ENOUGH} until the next boot");
    }
}
