//! Rules on network interfaces.

use super::{
    Candidate, Cause, Field, Rule,
    networks::{interface_field, interfaces, networks},
    syntax,
};
use crate::v1::{Interface, Network};

pub(super) const RULES: &[Rule] = &[
    each_interface_alone,
    masquerade_is_for_the_pod,
    bridge_on_the_pod,
];

/// A rule that looks at one interface and its field.
type InterfaceRule = fn(&Field, &Interface) -> Option<Cause>;

const INTERFACE_RULES: &[InterfaceRule] = &[
    slirp_is_gone,
    macvtap_is_gone,
    passt_is_gone,
    one_binding,
    name_characters,
    model_is_served,
    hardware_address,
    pci_address,
    link_state,
];

const MODELS: [&str; 7] = [
    "e1000", "e1000e", "igb", "ne2k_pci", "pcnet", "rtl8139", "virtio",
];
const ETHERNET_ADDRESS: usize = 6;

fn each_interface_alone(c: &Candidate<'_>) -> Vec<Cause> {
    interfaces(c)
        .flat_map(|(i, interface)| {
            let field = interface_field(c, i);
            INTERFACE_RULES
                .iter()
                .filter_map(|rule| rule(&field, interface))
                .collect::<Vec<_>>()
        })
        .collect()
}

/// 164: the user-mode stack is gone.
fn slirp_is_gone(field: &Field, interface: &Interface) -> Option<Cause> {
    interface.slirp.as_ref().map(|_| {
        Cause::invalid(
            &field.child("slirp"),
            "Slirp interface support has been discontinued since v1.3",
        )
    })
}

/// 164: the built-in macvtap binding is gone.
fn macvtap_is_gone(field: &Field, interface: &Interface) -> Option<Cause> {
    interface.macvtap.as_ref().map(|_| {
        Cause::invalid(
            &field.child("macvtap"),
            "Macvtap network binding has been discontinued since v1.3",
        )
    })
}

/// 164: the old passt binding is gone.
fn passt_is_gone(field: &Field, interface: &Interface) -> Option<Cause> {
    interface.passt.as_ref().map(|_| {
        Cause::invalid(
            &field.child("passt"),
            "Passt network binding has been discontinued since v1.3",
        )
    })
}

/// 161: an interface is bound in one way.
fn one_binding(field: &Field, interface: &Interface) -> Option<Cause> {
    let bindings = [
        interface.bridge.is_some(),
        interface.masquerade.is_some(),
        interface.sriov.is_some(),
        interface.passt_binding.is_some(),
        interface.binding.is_some(),
    ];
    (bindings.into_iter().filter(|there| *there).count() != 1).then(|| {
        let name = &interface.name;
        let message = format!(
            "logical {name} interface must have exactly one binding method or binding plugin"
        );
        Cause::invalid(field, message)
    })
}

/// 157: the name is made of plain characters.
fn name_characters(field: &Field, interface: &Interface) -> Option<Cause> {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    let fine = !interface.name.is_empty() && interface.name.chars().all(plain);
    (!fine).then(|| {
        Cause::invalid(
            &field.child("name"),
            "Network interface name can only contain alphabetical characters, numbers, dashes (-) or underscores (_)",
        )
    })
}

/// 158: the model is one that is served.
fn model_is_served(field: &Field, interface: &Interface) -> Option<Cause> {
    let model = interface
        .model
        .as_deref()
        .filter(|model| !model.is_empty())?;
    (!MODELS.contains(&model)).then(|| {
        let message = format!("interface {field}.name uses model {model} that is not supported.");
        Cause::not_supported(&field.child("model"), message)
    })
}

/// 159: a hardware address is one of Ethernet.
fn hardware_address(field: &Field, interface: &Interface) -> Option<Cause> {
    let address = interface
        .mac_address
        .as_deref()
        .filter(|address| !address.is_empty())?;
    let fault = match syntax::mac_len(address) {
        Some(ETHERNET_ADDRESS) => return None,
        Some(_) => "too long",
        None => "malformed",
    };
    let message = format!("interface {field}.name has {fault} MAC address ({address}).");
    Some(Cause::invalid(&field.child("macAddress"), message))
}

/// 160: a PCI address is well-formed.
fn pci_address(field: &Field, interface: &Interface) -> Option<Cause> {
    let address = interface
        .pci_address
        .as_deref()
        .filter(|address| !address.is_empty())?;
    (!syntax::is_pci_address(address)).then(|| {
        let message = format!("interface {field}.name has malformed PCI address ({address}).");
        Cause::invalid(&field.child("pciAddress"), message)
    })
}

/// 166: the link state is one that exists.
fn link_state(field: &Field, interface: &Interface) -> Option<Cause> {
    let state = interface
        .state
        .as_deref()
        .filter(|state| !state.is_empty())?;
    (!matches!(state, "up" | "down" | "absent")).then(|| {
        let message = format!(
            "logical {} interface state value is unsupported: {state}",
            interface.name
        );
        Cause::invalid(&field.child("state"), message)
    })
}

fn network_of<'a>(c: &Candidate<'a>, interface: &Interface) -> Option<&'a Network> {
    networks(c)
        .map(|(_, network)| network)
        .find(|network| network.name == interface.name)
}

/// 162: only the pod's address can hide a guest.
fn masquerade_is_for_the_pod(c: &Candidate<'_>) -> Vec<Cause> {
    interfaces(c)
        .filter(|(_, interface)| interface.masquerade.is_some())
        .filter(|(_, interface)| {
            network_of(c, interface).is_some_and(|network| network.pod.is_none())
        })
        .map(|(i, _)| {
            let field = interface_field(c, i).child("name");
            Cause::invalid(
                &field,
                "Masquerade interface only implemented with pod network",
            )
        })
        .collect()
}

/// 163: the administrator may forbid the bridge on the pod's network.
fn bridge_on_the_pod(c: &Candidate<'_>) -> Vec<Cause> {
    if c.config.bridge_on_pod_network {
        return vec![];
    }
    interfaces(c)
        .filter(|(_, interface)| interface.bridge.is_some())
        .filter(|(_, interface)| {
            network_of(c, interface).is_some_and(|network| network.pod.is_some())
        })
        .map(|(i, _)| {
            let field = interface_field(c, i).child("name");
            Cause::invalid(
                &field,
                "Bridge on pod network configuration is not enabled under kubevirt-config",
            )
        })
        .collect()
}
