//! Generates the device plugin protocol's code without an installed protoc.

use std::error::Error;

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed=proto/deviceplugin.proto");
    let descriptors = protox::compile(["deviceplugin.proto"], ["proto"])?;
    tonic_prost_build::configure().compile_fds(descriptors)?;
    Ok(())
}
