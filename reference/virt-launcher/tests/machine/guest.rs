//! The probe guest's files: from the environment, or built with the commands of its README.

use std::{
    env,
    path::{Path, PathBuf},
    process::Command,
    sync::LazyLock,
};

/// The kernel.
pub(crate) static PROBE: LazyLock<PathBuf> =
    LazyLock::new(|| from_env("PROBE_ELF").unwrap_or_else(|| built().join("probe")));

/// The disk.
pub(crate) static DISK: LazyLock<PathBuf> = LazyLock::new(|| {
    from_env("PROBE_DISK").unwrap_or_else(|| {
        let programs = built();
        let image = programs.join("probe.img");
        let mut pack = cargo();
        pack.args([
            "run",
            "--quiet",
            "--package",
            "probe-image",
            "--target-dir",
            "target/probe",
            "--",
        ]);
        run(pack
            .arg(programs.join("probe"))
            .arg(programs.join("boot-sector"))
            .arg(&image));
        image
    })
});

fn from_env(name: &str) -> Option<PathBuf> {
    env::var_os(name).map(PathBuf::from)
}

fn built() -> PathBuf {
    let mut build = cargo();
    build.args([
        "build",
        "--quiet",
        "--release",
        "--target",
        "x86_64-unknown-none",
    ]);
    run(build.args([
        "--manifest-path",
        "conformance/probe/Cargo.toml",
        "--target-dir",
        "target/probe",
    ]));
    workspace().join("target/probe/x86_64-unknown-none/release")
}

fn cargo() -> Command {
    let mut cargo = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo
        .current_dir(workspace())
        .env_remove("CARGO_TARGET_DIR");
    cargo
}

fn run(command: &mut Command) {
    let status = command.status().expect("cargo runs");
    assert!(status.success(), "{command:?}: {status}");
}

fn workspace() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .ancestors()
        .nth(2)
        .expect("the workspace")
}
