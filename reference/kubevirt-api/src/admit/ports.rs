//! Rules on the ports of interfaces.

use super::{
    Candidate, Cause, Field, Rule,
    networks::{interface_field, interfaces},
    syntax, volumes,
};
use crate::v1::Port;

pub(super) const RULES: &[Rule] = &[each_port_alone, names_are_unique];

/// A rule that looks at one port and its field.
type PortRule = fn(&Field, &Port) -> Option<Cause>;

const PORT_RULES: &[PortRule] = &[number, protocol, name];

fn ports_field(c: &Candidate<'_>, interface: usize) -> Field {
    interface_field(c, interface).child("ports")
}

fn each_port_alone(c: &Candidate<'_>) -> Vec<Cause> {
    let mut causes = Vec::new();
    for (i, interface) in interfaces(c) {
        for (j, port) in interface.ports.iter().flatten().enumerate() {
            let field = ports_field(c, i).index(j);
            causes.extend(PORT_RULES.iter().filter_map(|rule| rule(&field, port)));
        }
    }
    causes
}

/// 168: the number is a port number.
fn number(field: &Field, port: &Port) -> Option<Cause> {
    let field = field.child("port");
    match port.port {
        0 => Some(Cause::required(&field, "Port field is mandatory.")),
        1..=65_535 => None,
        _ => Some(Cause::invalid(
            &field,
            "Port field must be in range 0 < x < 65536.",
        )),
    }
}

/// 169: the protocol is one that is forwarded.
fn protocol(field: &Field, port: &Port) -> Option<Cause> {
    let protocol = port.protocol.as_deref().filter(|p| !p.is_empty())?;
    (!matches!(protocol, "TCP" | "UDP")).then(|| {
        Cause::invalid(
            &field.child("protocol"),
            "Unknown protocol, only TCP or UDP allowed",
        )
    })
}

/// 170: the name is a service name.
fn name(field: &Field, port: &Port) -> Option<Cause> {
    let name = port.name.as_deref().filter(|name| !name.is_empty())?;
    (!syntax::is_port_name(name)).then(|| {
        Cause::invalid(
            &field.child("name"),
            format!("Invalid name of the port: {name}"),
        )
    })
}

/// 170: no two ports of an interface have one name.
fn names_are_unique(c: &Candidate<'_>) -> Vec<Cause> {
    let mut causes = Vec::new();
    for (i, interface) in interfaces(c) {
        let ports = interface.ports.as_deref().unwrap_or_default();
        let named: Vec<(usize, &str)> = ports
            .iter()
            .enumerate()
            .filter_map(|(j, port)| Some((j, port.name.as_deref().filter(|n| !n.is_empty())?)))
            .collect();
        for (_, again) in volumes::repeated(named.iter().map(|(_, name)| *name)) {
            let (j, name) = named[again];
            let field = ports_field(c, i).index(j).child("name");
            causes.push(Cause::duplicate(
                &field,
                format!("Duplicate name of the port: {name}"),
            ));
        }
    }
    causes
}
