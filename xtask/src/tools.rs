//! Kubernetes and its companions, built from pinned Go modules and kept outside `target/`, so that
//! `cargo clean` does not cost ten minutes. What is used is what was built: digests are recorded at
//! the build and checked before use.

mod cache;
mod modules;

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::Context as _;
use sha2::{Digest as _, Sha256};

use crate::{
    host,
    image::{
        self,
        layer::{Entry, Layer},
        oci,
    },
    lock,
    progress::{Step, say},
    run::Cmd,
};
use modules::{MODULES, Module};

/// Programs that are ready to run, all in one directory.
#[derive(Clone, Debug)]
pub struct Tools {
    /// The directory.
    pub bin: PathBuf,
    /// Archive of the image that holds pods' namespaces.
    pub pause: PathBuf,
}

/// How to get the programs.
#[derive(Clone, Debug)]
pub struct Options {
    /// Whether packages may be installed.
    pub install: bool,
    /// Whether the name server is wanted too.
    pub dns: bool,
    /// Programs in this directory are used instead of building them.
    pub k8s_bin_dir: Option<PathBuf>,
}

/// File of the pause image.
const PAUSE: &str = "pause.tar";

/// Where built programs are kept.
fn cache_root() -> anyhow::Result<PathBuf> {
    let base = std::env::var_os("XDG_CACHE_HOME")
        .map(PathBuf::from)
        .or_else(|| std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".cache")));
    Ok(base
        .context("neither XDG_CACHE_HOME nor HOME is set")?
        .join("virtmark/tools"))
}

fn wanted(dns: bool) -> impl Iterator<Item = &'static Module> {
    MODULES
        .iter()
        .filter(move |module| dns || !module.only_with_dns)
}

/// Whether everything is built already.
pub fn cached(root: &Path, dns: bool) -> bool {
    let Ok(cache) = cache_root() else {
        return false;
    };
    wanted(dns).all(|module| {
        let dir = module.dir(root, &cache);
        dir.is_ok_and(|dir| cache::is_whole(&dir, module.programs))
    })
}

/// Builds what is missing and collects all programs in one directory.
pub fn ensure(root: &Path, options: &Options) -> anyhow::Result<Tools> {
    let cache = cache_root()?;
    let _lock = lock::take(&cache.join("lock"), "building Kubernetes")?;
    let given = options
        .k8s_bin_dir
        .clone()
        .or_else(|| std::env::var_os("KUBEBUILDER_ASSETS").map(PathBuf::from));
    let mut programs = Vec::new();
    for module in wanted(options.dns) {
        let missing: Vec<&str> = module
            .programs
            .iter()
            .copied()
            .filter(|name| !is_given(given.as_deref(), name))
            .collect();
        for name in module
            .programs
            .iter()
            .filter(|name| !missing.contains(name))
        {
            programs.push(given.as_deref().unwrap_or_else(|| Path::new("")).join(name));
        }
        if missing.is_empty() {
            continue;
        }
        let dir = module.dir(root, &cache)?;
        if !cache::is_whole(&dir, module.programs) {
            build(root, module, &dir, options.install)?;
        }
        programs.extend(missing.iter().map(|name| dir.join(name)));
    }
    let bin = collect(&cache, &programs)?;
    let pause = pause(root, &cache)?;
    Ok(Tools { bin, pause })
}

fn is_given(dir: Option<&Path>, name: &str) -> bool {
    dir.is_some_and(|dir| dir.join(name).is_file())
}

fn build(root: &Path, module: &Module, dir: &Path, install: bool) -> anyhow::Result<()> {
    anyhow::ensure!(
        host::has_program("go"),
        "Go is missing: {} is built from its source (https://go.dev/doc/install, or the package golang)",
        module.name
    );
    host::ensure(host::TOOLS, install)?;
    if dir.exists() {
        say!(
            "the cached {} is damaged or incomplete: building it anew",
            module.name
        );
    }
    let part = dir.with_extension("part");
    drop(fs::remove_dir_all(&part));
    fs::create_dir_all(&part)?;
    let what = format!(
        "build {} ({} on two cores, once per version)",
        module.name, module.takes
    );
    Step::of(what, |step| module.build(root, &part, step))?;
    cache::seal(&part, module.programs)?;
    drop(fs::remove_dir_all(dir));
    fs::rename(&part, dir).with_context(|| format!("failed to move {} into place", part.display()))
}

/// A directory of links, named after what they lead to; clusters that run keep theirs.
fn collect(cache: &Path, programs: &[PathBuf]) -> anyhow::Result<PathBuf> {
    let list: Vec<String> = programs
        .iter()
        .map(|path| path.display().to_string())
        .collect();
    let bin = cache.join("sets").join(digest(list.join("\n").as_bytes()));
    fs::create_dir_all(&bin)?;
    for program in programs {
        let name = program.file_name().context("a program without a name")?;
        let link = bin.join(name);
        if fs::read_link(&link).ok().as_deref() != Some(program) {
            drop(fs::remove_file(&link));
            std::os::unix::fs::symlink(program, &link)?;
        }
    }
    Ok(bin)
}

/// The image of the container that holds a pod's namespaces: one small static program.
fn pause(root: &Path, cache: &Path) -> anyhow::Result<PathBuf> {
    let source = root.join("xtask/pause/pause.rs");
    let text = fs::read(&source).with_context(|| format!("failed to read {}", source.display()))?;
    let dir = cache.join(format!("pause-{}", digest(&text)));
    let archive = dir.join(PAUSE);
    if cache::is_whole(&dir, &[PAUSE]) {
        return Ok(archive);
    }
    host::ensure_rust_targets(&[image::MUSL])?;
    fs::create_dir_all(&dir)?;
    Step::of("build the pause image", |_| {
        let program = dir.join("pause");
        Cmd::new("rustc")
            .args(["--edition", "2024", "--target", image::MUSL])
            .args(["-Copt-level=s", "-Cpanic=abort", "-Cstrip=symbols", "-o"])
            .arg(&program)
            .arg(&source)
            .output()?;
        let mut layer = Layer::default();
        layer.put("pause", Entry::File(program.clone(), 0o755));
        let spec = oci::ImageSpec {
            reference: crate::cluster::PAUSE_IMAGE.to_owned(),
            layers: vec![layer],
            entrypoint: vec!["/pause".to_owned()],
            user: "65535:65535".to_owned(),
        };
        oci::write_archive(&archive, &spec)?;
        fs::remove_file(program)?;
        cache::seal(&dir, &[PAUSE])
    })?;
    Ok(archive)
}

/// The first half of a SHA-256, in hex: long enough to tell versions apart, short enough for a path.
fn digest(bytes: &[u8]) -> String {
    Sha256::digest(bytes)
        .iter()
        .take(16)
        .map(|byte| format!("{byte:02x}"))
        .collect()
}
