//! Compiles the protocol with a parser written in Rust, so that no protoc is needed on the machine.

use std::error::Error;

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed=proto");
    let files = protox::compile(["launcher.proto"], ["proto"])?;
    tonic_prost_build::configure()
        .type_attribute(
            "DomainState",
            "#[derive(serde::Serialize, serde::Deserialize)]",
        )
        .field_attribute(
            "DomainState.phase",
            "#[serde(with = \"crate::state::phase_name\")]",
        )
        .field_attribute(
            "DomainState.ending",
            "#[serde(with = \"crate::state::ending_name\")]",
        )
        .compile_fds(files)?;
    Ok(())
}
