//! Lists the scenarios and data files so that they travel inside the binary: a run needs no checkout.

use std::{
    fmt::Write as _,
    fs, io,
    path::{Path, PathBuf},
};

fn main() -> io::Result<()> {
    let manifest = PathBuf::from(std::env::var_os("CARGO_MANIFEST_DIR").unwrap_or_default());
    let out = PathBuf::from(std::env::var_os("OUT_DIR").unwrap_or_default());
    let mut text = String::new();
    for (name, folder) in [
        ("SCENARIOS", manifest.join("../../scenarios")),
        ("SPEC", manifest.join("../spec")),
    ] {
        let folder = folder.canonicalize()?;
        let mut files = Vec::new();
        collect(&folder, &mut files)?;
        files.sort();
        let _ = writeln!(text, "pub(crate) const {name}: &[(&str, &str)] = &[");
        for file in files {
            let relative = file.strip_prefix(&folder).unwrap_or(&file);
            let _ = writeln!(text, "    ({relative:?}, include_str!({file:?})),");
        }
        text.push_str("];\n");
    }
    fs::write(out.join("embedded.rs"), text)
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) -> io::Result<()> {
    // A folder counts as changed when a file is added or taken away.
    println!("cargo::rerun-if-changed={}", folder.display());
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            collect(&path, files)?;
        } else if path.extension().is_some_and(|ending| ending == "yaml") {
            println!("cargo::rerun-if-changed={}", path.display());
            files.push(path);
        }
    }
    Ok(())
}
