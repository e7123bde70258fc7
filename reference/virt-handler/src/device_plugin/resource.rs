//! Which devices exist for the scheduler, and how they look to the kubelet: plain values only.

use std::path::{Path, PathBuf};

use kubevirt_api::names::{RESOURCE_KVM, RESOURCE_TUN, RESOURCE_VHOST_NET};

use super::api::{ContainerAllocateResponse, Device, DeviceSpec};

/// One resource and the device file that stands behind it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceResource {
    /// Name that pods request, such as `devices.kubevirt.io/kvm`.
    pub resource: &'static str,
    /// Device file on the node and in the pod.
    pub path: &'static str,
    /// How many pods may hold the device at once.
    pub count: usize,
}

/// The resources of every node; a device that is absent is advertised with nothing allocatable.
#[must_use]
pub fn standard_resources(count: usize) -> Vec<DeviceResource> {
    [
        (RESOURCE_KVM, "/dev/kvm"),
        (RESOURCE_TUN, "/dev/net/tun"),
        (RESOURCE_VHOST_NET, "/dev/vhost-net"),
    ]
    .map(|(resource, path)| DeviceResource {
        resource,
        path,
        count,
    })
    .to_vec()
}

impl DeviceResource {
    /// The part of the resource's name after the slash.
    #[must_use]
    pub fn short_name(&self) -> &'static str {
        self.resource
            .rsplit_once('/')
            .map_or(self.resource, |(_, name)| name)
    }

    /// File name of the plugin's socket in the kubelet's directory.
    #[must_use]
    pub fn socket_name(&self) -> String {
        format!("kubevirt-{}.sock", self.short_name())
    }

    /// Where the device file is seen from here, when the node's root is at `host_root`.
    #[must_use]
    pub fn path_under(&self, host_root: &Path) -> PathBuf {
        host_root.join(self.path.trim_start_matches('/'))
    }

    /// The kubelet's list: every share of the device, all of them as healthy as the device.
    #[must_use]
    pub fn devices(&self, healthy: bool) -> Vec<Device> {
        let health = if healthy { "Healthy" } else { "Unhealthy" };
        (0..self.count)
            .map(|n| Device {
                id: format!("{}{n}", self.short_name()),
                health: health.to_owned(),
                topology: None,
            })
            .collect()
    }

    /// What one container gets: the device file, once, however many shares it asked for.
    #[must_use]
    pub fn allocation(&self) -> ContainerAllocateResponse {
        ContainerAllocateResponse {
            devices: vec![DeviceSpec {
                container_path: self.path.to_owned(),
                host_path: self.path.to_owned(),
                permissions: "mrw".to_owned(),
            }],
            ..ContainerAllocateResponse::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_has_unique_ids_and_one_health() {
        let kvm = &standard_resources(1000)[0];
        let devices = kvm.devices(false);
        let ids: std::collections::BTreeSet<_> = devices.iter().map(|d| &d.id).collect();
        assert_eq!(ids.len(), 1000);
        assert!(devices.iter().all(|d| d.health == "Unhealthy"));
        assert!(kvm.devices(true).iter().all(|d| d.health == "Healthy"));
    }

    #[test]
    fn names_and_paths() {
        let tun = &standard_resources(1)[1];
        assert_eq!(tun.short_name(), "tun");
        assert_eq!(tun.socket_name(), "kubevirt-tun.sock");
        assert_eq!(
            tun.path_under(Path::new("/host")),
            Path::new("/host/dev/net/tun")
        );
        assert_eq!(tun.allocation().devices[0].host_path, "/dev/net/tun");
    }
}
