//! OCI image layouts in one tar file, as `ctr images import` and `kind load` take them, written
//! without any container tool and byte-identical for identical content.

use std::{
    fs::File,
    io::{BufWriter, Write},
    path::Path,
};

use anyhow::Context as _;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use super::layer::{Entry, Layer};

/// One image.
#[derive(Clone, Debug, Default)]
pub struct ImageSpec {
    /// Full reference, such as `registry.example/name:tag`.
    pub reference: String,
    /// Layers, lowest first.
    pub layers: Vec<Layer>,
    /// Program that a container runs.
    pub entrypoint: Vec<String>,
    /// User that the program runs as; root when empty.
    pub user: String,
}

/// Writes the archive; returns the digest of the manifest, which names the image's whole content.
pub fn write_archive(path: &Path, image: &ImageSpec) -> anyhow::Result<String> {
    let mut blobs = Layer::default();
    let mut layers = Vec::new();
    let mut diff_ids = Vec::new();
    for layer in &image.layers {
        let mut tar = Vec::new();
        layer
            .write_tar(&mut tar)
            .context("failed to write a layer")?;
        let digest = put_blob(&mut blobs, &tar);
        layers.push(json!({
            "mediaType": "application/vnd.oci.image.layer.v1.tar",
            "digest": digest,
            "size": tar.len(),
        }));
        diff_ids.push(digest);
    }
    let config = canonical(&json!({
        "architecture": "amd64",
        "os": "linux",
        "config": {"Entrypoint": image.entrypoint, "User": image.user},
        "rootfs": {"type": "layers", "diff_ids": diff_ids},
    }));
    let config_digest = put_blob(&mut blobs, &config);
    let manifest = canonical(&json!({
        "schemaVersion": 2,
        "mediaType": "application/vnd.oci.image.manifest.v1+json",
        "config": {
            "mediaType": "application/vnd.oci.image.config.v1+json",
            "digest": config_digest,
            "size": config.len(),
        },
        "layers": layers,
    }));
    let manifest_digest = put_blob(&mut blobs, &manifest);
    let index = canonical(&json!({
        "schemaVersion": 2,
        "manifests": [{
            "mediaType": "application/vnd.oci.image.manifest.v1+json",
            "digest": manifest_digest,
            "size": manifest.len(),
            "platform": {"architecture": "amd64", "os": "linux"},
            "annotations": {
                "io.containerd.image.name": image.reference,
                "org.opencontainers.image.ref.name": image.reference.rsplit(':').next(),
            },
        }],
    }));
    blobs.put(
        "oci-layout",
        Entry::Bytes(br#"{"imageLayoutVersion":"1.0.0"}"#.to_vec(), 0o644),
    );
    blobs.put("index.json", Entry::Bytes(index, 0o644));
    save(path, &blobs).with_context(|| format!("failed to write {}", path.display()))?;
    Ok(manifest_digest)
}

/// Writes beside the target and renames, so that a reader never sees half an archive.
fn save(path: &Path, content: &Layer) -> std::io::Result<()> {
    let part = path.with_extension("part");
    let mut file = BufWriter::new(File::create(&part)?);
    content.write_tar(&mut file)?;
    file.flush()?;
    std::fs::rename(&part, path)
}

fn put_blob(blobs: &mut Layer, bytes: &[u8]) -> String {
    let hex: String = Sha256::digest(bytes)
        .iter()
        .map(|b| format!("{b:02x}"))
        .collect();
    blobs.put(
        &format!("blobs/sha256/{hex}"),
        Entry::Bytes(bytes.to_vec(), 0o644),
    );
    format!("sha256:{hex}")
}

fn canonical(value: &Value) -> Vec<u8> {
    value.to_string().into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn image() -> ImageSpec {
        let mut layer = Layer::default();
        layer.put("usr/bin/x", Entry::Bytes(b"x".to_vec(), 0o755));
        ImageSpec {
            reference: "registry.example/x:v1".to_owned(),
            layers: vec![layer],
            entrypoint: vec!["/usr/bin/x".to_owned()],
            user: String::new(),
        }
    }

    #[test]
    fn the_same_image_gives_the_same_bytes() {
        let dir = tempfile::tempdir().unwrap();
        let (a, b) = (dir.path().join("a.tar"), dir.path().join("b.tar"));
        let digest = write_archive(&a, &image()).unwrap();
        assert_eq!(write_archive(&b, &image()).unwrap(), digest);
        assert_eq!(std::fs::read(a).unwrap(), std::fs::read(b).unwrap());
    }

    #[test]
    fn other_content_gives_another_digest() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.tar");
        let first = write_archive(&path, &image()).unwrap();
        let mut other = image();
        other.layers[0].put("usr/bin/x", Entry::Bytes(b"y".to_vec(), 0o755));
        assert_ne!(write_archive(&path, &other).unwrap(), first);
    }

    #[test]
    fn every_blob_is_named_by_its_digest() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.tar");
        write_archive(&path, &image()).unwrap();
        let mut archive = tar::Archive::new(File::open(path).unwrap());
        let mut blobs = 0;
        for entry in archive.entries().unwrap() {
            let mut entry = entry.unwrap();
            let name = entry.path().unwrap().display().to_string();
            let Some(want) = name.strip_prefix("blobs/sha256/").filter(|n| !n.is_empty()) else {
                continue;
            };
            let mut bytes = Vec::new();
            std::io::Read::read_to_end(&mut entry, &mut bytes).unwrap();
            let got: String = Sha256::digest(&bytes)
                .iter()
                .map(|b| format!("{b:02x}"))
                .collect();
            assert_eq!(got, want);
            blobs += 1;
        }
        assert_eq!(blobs, 3);
    }
}
