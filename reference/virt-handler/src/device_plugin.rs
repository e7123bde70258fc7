//! Advertises the node's virtualisation devices to the kubelet, so that the scheduler places VMs where they can run.
//! Each resource is one plugin with a socket of its own; the kubelet restarting, or a device file that comes or goes, is met here.

mod health;
mod lifecycle;
mod resource;
mod service;

pub use lifecycle::{KubeletDir, PluginError, PluginSet, run_all};
pub use resource::{DeviceResource, standard_resources};

/// Generated from proto/deviceplugin.proto.
pub mod api {
    #![expect(
        clippy::allow_attributes_without_reason,
        reason = "generated code keeps its own style"
    )]
    tonic::include_proto!("v1beta1");
}
