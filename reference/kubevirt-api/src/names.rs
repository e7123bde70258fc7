//! Labels, annotations, finalizers and resource names that clients of KubeVirt rely on.

/// API group of VirtualMachine, VirtualMachineInstance and KubeVirt.
pub const GROUP: &str = "kubevirt.io";
/// API group of the aggregated subresources.
pub const SUBRESOURCE_GROUP: &str = "subresources.kubevirt.io";

/// Label on pods of this system that tells their role, such as `virt-launcher`.
pub const LABEL_APP: &str = "kubevirt.io";
/// Label on a launcher pod: uid of the VMI that it runs.
pub const LABEL_CREATED_BY: &str = "kubevirt.io/created-by";
/// Label on VMIs and launcher pods: the node that runs the machine.
pub const LABEL_NODE_NAME: &str = "kubevirt.io/nodeName";
/// Label on a launcher pod: name of the VMI.
pub const LABEL_VMI_ID: &str = "vmi.kubevirt.io/id";
/// Label on a launcher pod: host name of the guest.
pub const LABEL_VM_NAME: &str = "vm.kubevirt.io/name";
/// Node label: `"true"` when VMs may be placed here.
pub const LABEL_SCHEDULABLE: &str = "kubevirt.io/schedulable";
/// Prefix of node labels that name a machine type of the emulator.
pub const LABEL_PREFIX_MACHINE_TYPE: &str = "machine-type.node.kubevirt.io/";
/// Prefix of node labels that name a CPU model.
pub const LABEL_PREFIX_CPU_MODEL: &str = "cpu-model.node.kubevirt.io/";
/// Prefix of node labels that name a CPU feature.
pub const LABEL_PREFIX_CPU_FEATURE: &str = "cpu-feature.node.kubevirt.io/";

/// Annotation on a launcher pod: name of the VMI.
pub const ANNOTATION_DOMAIN: &str = "kubevirt.io/domain";
/// Node annotation: time of virt-handler's last sign of life, RFC 3339.
pub const ANNOTATION_HEARTBEAT: &str = "kubevirt.io/heartbeat";
/// Annotation on a VMI: generation of the VM that it was made from.
pub const ANNOTATION_VM_GENERATION: &str = "kubevirt.io/vm-generation";
/// Annotation on VMs and VMIs: newest API version that a controller has seen.
pub const ANNOTATION_LATEST_OBSERVED_API_VERSION: &str = "kubevirt.io/latest-observed-api-version";
/// Annotation on VMs and VMIs: stored API version that a controller has seen.
pub const ANNOTATION_STORAGE_OBSERVED_API_VERSION: &str =
    "kubevirt.io/storage-observed-api-version";
/// Annotation on VM templates and VMIs: numbering scheme of PCI slots.
pub const ANNOTATION_PCI_TOPOLOGY_VERSION: &str = "kubevirt.io/pci-topology-version";
/// Our own annotation on a VMI: the machine back end in use (`vmm`, `qemu-kvm`, `qemu-tcg`).
pub const ANNOTATION_MACHINE_BACKEND: &str = "virtmark.dev/machine-backend";

/// Finalizer of virt-controller on VMs and VMIs.
pub const FINALIZER_CONTROLLER: &str = "kubevirt.io/virtualMachineControllerFinalize";
/// Finalizer of virt-handler on VMIs: the machine must be gone first.
pub const FINALIZER_FOREGROUND_DELETE_VMI: &str = "kubevirt.io/foregroundDeleteVirtualMachine";
/// Finalizer of virt-operator on the KubeVirt resource.
pub const FINALIZER_KUBEVIRT: &str = "kubevirt.io/foregroundDeleteKubeVirt";

/// Readiness gate on launcher pods: false while the machine is paused.
pub const CONDITION_UNPAUSED: &str = "kubevirt.io/virtual-machine-unpaused";

/// Extended resource that stands for one opening of /dev/kvm.
pub const RESOURCE_KVM: &str = "devices.kubevirt.io/kvm";
/// Extended resource that stands for one opening of /dev/net/tun.
pub const RESOURCE_TUN: &str = "devices.kubevirt.io/tun";
/// Extended resource that stands for one opening of /dev/vhost-net.
pub const RESOURCE_VHOST_NET: &str = "devices.kubevirt.io/vhost-net";
