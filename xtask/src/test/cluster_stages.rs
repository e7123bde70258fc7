//! The stages that need a cluster: that clusters leave nothing behind, that the suite passes on the
//! reference, and that it notices when the reference breaks a promise.

mod faults;

use std::{path::Path, process::ExitCode};

use crate::{
    cluster::{Make, Provider, Which},
    conformance::{self, ConformanceArgs, Prepared},
    progress::say,
    selftest,
};

/// Brings clusters up and down and compares the host before and after.
pub fn leaves_nothing(root: &Path, install: bool) -> anyhow::Result<()> {
    let make = Make {
        which: Which {
            name: "selftest-a".parse()?,
            provider: Provider::Local,
            kubeconfig: None,
        },
        nodes: 2,
        node_cpus: None,
        dns: false,
        no_install: !install,
        k8s_bin_dir: None,
    };
    selftest::run(root, &make)
}

/// The whole suite on the reference, then the reference broken on purpose and a component killed, all
/// on one cluster that is taken down whatever happens.
pub fn conformance(root: &Path, install: bool) -> anyhow::Result<()> {
    let prepared = ConformanceArgs::plain(!install).prepare(root)?;
    let result = passes(root, &prepared)
        .and_then(|()| faults::each_turns_its_scenarios_red(root, &prepared))
        .and_then(|()| faults::a_killed_component_is_survived(root, &prepared));
    prepared.cluster.down()?;
    result
}

fn passes(root: &Path, prepared: &Prepared) -> anyhow::Result<()> {
    let code = conformance::run_suite(root, &prepared.suite, &prepared.cluster, &[])?;
    anyhow::ensure!(
        code == ExitCode::SUCCESS,
        "the suite does not pass on the reference: {code:?}"
    );
    say!("the suite passes on the reference");
    Ok(())
}
