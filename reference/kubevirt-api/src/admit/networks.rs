//! Rules on networks, and on how interfaces and networks pair up.

use super::{Candidate, Cause, Field, Rule};
use crate::v1::{Interface, Network};

pub(super) const RULES: &[Rule] = &[
    networks_have_interfaces,
    interfaces_have_networks,
    network_names_are_unique,
    one_interface_for_each_network,
    one_pod_network,
    one_default_network,
    one_type,
    attachment_has_a_name,
];

pub(super) fn networks<'a>(c: &Candidate<'a>) -> impl Iterator<Item = (usize, &'a Network)> {
    c.spec.networks.iter().flatten().enumerate()
}

pub(super) fn interfaces<'a>(c: &Candidate<'a>) -> impl Iterator<Item = (usize, &'a Interface)> {
    c.spec
        .domain
        .devices
        .interfaces
        .iter()
        .flatten()
        .enumerate()
}

pub(super) fn interface_field(c: &Candidate<'_>, i: usize) -> Field {
    c.root.child("domain.devices.interfaces").index(i)
}

fn network_field(c: &Candidate<'_>, i: usize) -> Field {
    c.root.child("networks").index(i)
}

/// 153: each network has an interface.
fn networks_have_interfaces(c: &Candidate<'_>) -> Vec<Cause> {
    networks(c)
        .filter(|(_, network)| !interfaces(c).any(|(_, i)| i.name == network.name))
        .map(|(i, network)| {
            let field = network_field(c, i).child("name");
            let message = format!("{field} '{}' not found.", network.name);
            Cause::required(&field, message)
        })
        .collect()
}

/// 154: each interface has a network.
fn interfaces_have_networks(c: &Candidate<'_>) -> Vec<Cause> {
    interfaces(c)
        .filter(|(_, interface)| !networks(c).any(|(_, n)| n.name == interface.name))
        .map(|(i, interface)| {
            let field = interface_field(c, i).child("name");
            let message = format!("{field} '{}' not found.", interface.name);
            Cause::invalid(&field, message)
        })
        .collect()
}

/// 155: names of networks are unique.
fn network_names_are_unique(c: &Candidate<'_>) -> Vec<Cause> {
    super::volumes::repeated(networks(c).map(|(_, network)| network.name.as_str()))
        .filter_map(|(_, again)| {
            let name = &c.spec.networks.as_ref()?.get(again)?.name;
            Some(Cause::duplicate(
                &network_field(c, again).child("name"),
                format!("Network with name {name:?} already exists, every network must have a unique name"),
            ))
        })
        .collect()
}

/// 156: a network has one interface.
fn one_interface_for_each_network(c: &Candidate<'_>) -> Vec<Cause> {
    super::volumes::repeated(interfaces(c).map(|(_, interface)| interface.name.as_str()))
        .map(|(_, again)| {
            Cause::duplicate(
                &interface_field(c, again).child("name"),
                "Only one interface can be connected to one specific network",
            )
        })
        .collect()
}

/// 174: the pod has one network.
fn one_pod_network(c: &Candidate<'_>) -> Vec<Cause> {
    if networks(c)
        .filter(|(_, network)| network.pod.is_some())
        .count()
        <= 1
    {
        return vec![];
    }
    let field = c.root.child("domain.devices.interfaces");
    let message = format!("more than one interface is connected to a pod network in {field}");
    vec![Cause::duplicate(&field, message)]
}

/// 175: one network is the pod's default.
fn one_default_network(c: &Candidate<'_>) -> Vec<Cause> {
    let defaults = networks(c)
        .filter(|(_, network)| {
            network
                .multus
                .as_ref()
                .is_some_and(|m| m.default == Some(true))
        })
        .count();
    let pods = networks(c)
        .filter(|(_, network)| network.pod.is_some())
        .count();
    let field = c.root.child("networks");
    let mut causes = Vec::new();
    if defaults > 1 {
        causes.push(Cause::invalid(
            &field,
            "Multus CNI should only have one default network",
        ));
    }
    if defaults > 0 && pods > 0 {
        causes.push(Cause::invalid(
            &field,
            "Pod network cannot be defined when Multus default network is defined",
        ));
    }
    causes
}

/// 176: a network is one thing.
fn one_type(c: &Candidate<'_>) -> Vec<Cause> {
    networks(c)
        .filter_map(|(i, network)| {
            let message = match (network.pod.is_some(), network.multus.is_some()) {
                (true, true) => "should have only one network type",
                (false, false) => "should have a network type",
                _ => return None,
            };
            Some(Cause::required(&network_field(c, i), message))
        })
        .collect()
}

/// 177: a network of Multus says which.
fn attachment_has_a_name(c: &Candidate<'_>) -> Vec<Cause> {
    networks(c)
        .filter(|(_, network)| {
            network
                .multus
                .as_ref()
                .is_some_and(|m| m.network_name.is_empty())
        })
        .map(|(i, _)| {
            Cause::required(
                &network_field(c, i),
                "CNI delegating plugin must have a networkName",
            )
        })
        .collect()
}
