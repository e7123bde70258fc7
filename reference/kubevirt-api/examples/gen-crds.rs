//! Writes `crds/<plural>.yaml` anew: `cargo run -p kubevirt-api --example gen-crds`.

use std::{error::Error, fs, path::Path};

fn main() -> Result<(), Box<dyn Error>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("crds");
    fs::create_dir_all(&folder)?;
    for (plural, document) in kubevirt_api::crd::documents() {
        let text = serde_saphyr::to_string(&document)?;
        fs::write(folder.join(format!("{plural}.yaml")), text)?;
    }
    Ok(())
}
