//! Gives each program its link script, so that a plain `cargo build` is enough.

fn main() {
    let folder = std::env::var("CARGO_MANIFEST_DIR").unwrap_or_default();
    for (program, script) in [
        ("probe", "kernel/probe.ld"),
        ("boot-sector", "boot/boot.ld"),
    ] {
        println!("cargo::rustc-link-arg-bin={program}=-T{folder}/{script}");
        println!("cargo::rustc-link-arg-bin={program}=--no-pie");
        println!("cargo::rustc-link-arg-bin={program}=--build-id=none");
        println!("cargo::rerun-if-changed={script}");
    }
    println!("cargo::rerun-if-changed=build.rs");
}
