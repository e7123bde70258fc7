//! Which images there are and what is in each of them.

use std::path::Path;

use super::{
    build::{Probe, Programs},
    layer::{Entry, Layer},
    oci::ImageSpec,
    qemu,
};

/// Where our images would be published.
pub const REGISTRY: &str = "registry.virtmark.dev";
/// Version of the components' images.
pub const VERSION: &str = concat!("v", env!("CARGO_PKG_VERSION"));
/// Version of the probe guest: changes when its protocol does.
pub const PROBE_VERSION: &str = "v1";

/// Components that run in pods; package, program and image have one name.
pub const COMPONENTS: &[&str] = &[
    "virt-operator",
    "virt-api",
    "virt-controller",
    "virt-handler",
    "virt-launcher",
    "virtmark",
];

/// Every image by its short name.
pub fn images(
    programs: &Programs,
    probe: &Probe,
) -> anyhow::Result<Vec<(&'static str, ImageSpec)>> {
    let mut all = Vec::new();
    for name in COMPONENTS {
        let mut layers = Vec::new();
        if *name == "virt-launcher" {
            layers.push(qemu::layer()?);
        }
        layers.push(component(name, &programs.path(name)));
        all.push((
            *name,
            ImageSpec {
                reference: format!("{REGISTRY}/{name}:{VERSION}"),
                layers,
                entrypoint: vec![format!("/usr/bin/{name}")],
                user: String::new(),
            },
        ));
    }
    all.push((
        "probe-kernel",
        data("probe-kernel", "boot/probe", &probe.kernel),
    ));
    all.push((
        "probe-disk",
        data("probe-disk", "disk/probe.img", &probe.disk),
    ));
    Ok(all)
}

/// The program and the few files that a C library or a security context may look for.
fn component(name: &str, program: &Path) -> Layer {
    let mut layer = Layer::default();
    let passwd = "root:x:0:0:root:/:/sbin/nologin\nqemu:x:107:107:qemu:/:/sbin/nologin\nvirt:x:1001:1001:virt:/:/sbin/nologin\n";
    let group = "root:x:0:\nqemu:x:107:\nvirt:x:1001:\n";
    layer.put("etc/passwd", Entry::Bytes(passwd.into(), 0o644));
    layer.put("etc/group", Entry::Bytes(group.into(), 0o644));
    layer.put("tmp", Entry::Dir(0o1777));
    layer.put("var/run", Entry::Dir(0o755));
    layer.put(
        &format!("usr/bin/{name}"),
        Entry::File(program.to_owned(), 0o755),
    );
    layer
}

/// An image that holds one file for guests. Guests' files are owned by root and readable by all.
fn data(name: &str, path: &str, file: &Path) -> ImageSpec {
    let mut layer = Layer::default();
    layer.put(path, Entry::File(file.to_owned(), 0o644));
    ImageSpec {
        reference: format!("{REGISTRY}/{name}:{PROBE_VERSION}"),
        layers: vec![layer],
        entrypoint: Vec::new(),
        user: String::new(),
    }
}
