//! Which provider to take, as a pure function of what the machine offers.

use std::path::Path;

use super::Which;
use crate::{host, run::Cmd, tools};

/// Where a cluster comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Provider {
    /// The first that fits: existing, local if it is built, kind, local.
    Auto,
    /// Our own, from Linux namespaces; needs root.
    Local,
    /// kind; needs docker or podman, and kind.
    Kind,
    /// A cluster that runs already, by its kubeconfig.
    Existing,
}

/// What the machine offers.
#[derive(Clone, Copy, Debug, Default)]
pub struct Offer {
    /// A kubeconfig was named.
    pub kubeconfig: bool,
    /// This is root on Linux.
    pub root: bool,
    /// Kubernetes is built already.
    pub cached: bool,
    /// kind is there and docker or podman answers.
    pub kind: bool,
}

/// Looks at the machine; asks no more than the answer needs.
pub fn look(root: &Path, which: &Which, dns: bool) -> Offer {
    let auto = which.provider == Provider::Auto && which.kubeconfig.is_none();
    let is_root = host::is_root();
    let cached = auto && is_root && tools::cached(root, dns);
    let engine = |name: &str| Cmd::new("timeout").args(["5", name, "info"]).succeeds();
    Offer {
        kubeconfig: which.kubeconfig.is_some(),
        root: is_root,
        cached,
        kind: auto
            && !cached
            && host::has_program("kind")
            && (engine("docker") || engine("podman")),
    }
}

/// The provider to take.
pub fn choose(asked: &Provider, offer: &Offer) -> anyhow::Result<Provider> {
    match asked {
        Provider::Auto if offer.kubeconfig => Ok(Provider::Existing),
        Provider::Auto if offer.root && offer.cached => Ok(Provider::Local),
        Provider::Auto if offer.kind => Ok(Provider::Kind),
        Provider::Auto if offer.root => Ok(Provider::Local),
        Provider::Auto => anyhow::bail!(
            "no provider fits this machine:\n  \
             existing needs --kubeconfig FILE\n  \
             local needs root (run it with sudo), Go and a C compiler\n  \
             kind needs the program kind and an answer from docker or podman"
        ),
        Provider::Existing if !offer.kubeconfig => {
            anyhow::bail!("--provider existing needs --kubeconfig FILE")
        }
        other => Ok(*other),
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    const NOTHING: Offer = Offer {
        kubeconfig: false,
        root: false,
        cached: false,
        kind: false,
    };

    #[rstest]
    #[case::named(Offer { kubeconfig: true, root: true, cached: true, kind: true }, Some(Provider::Existing))]
    #[case::built(Offer { root: true, cached: true, kind: true, ..NOTHING }, Some(Provider::Local))]
    #[case::engine(Offer { root: true, kind: true, ..NOTHING }, Some(Provider::Kind))]
    #[case::root_only(Offer { root: true, ..NOTHING }, Some(Provider::Local))]
    #[case::nothing(NOTHING, None)]
    fn auto(#[case] offer: Offer, #[case] want: Option<Provider>) {
        assert_eq!(choose(&Provider::Auto, &offer).ok(), want);
    }

    #[test]
    fn existing_needs_a_kubeconfig() {
        assert!(choose(&Provider::Existing, &NOTHING).is_err());
    }
}
