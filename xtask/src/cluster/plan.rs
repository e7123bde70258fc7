//! Everything about a local cluster that follows from its name and its number: addresses, ports,
//! link names, directories. Pure, so that two clusters can be shown never to meet.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use thiserror::Error;

/// A name that is usable in link names, cgroup paths and node names.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Name(String);

/// Why a name is refused.
#[derive(Debug, PartialEq, Eq, Error)]
#[error("cluster name {0:?} must be 1 to 20 characters of a-z, 0-9 and -, and begin with a letter")]
pub struct NameError(String);

impl TryFrom<String> for Name {
    type Error = NameError;

    fn try_from(text: String) -> Result<Self, NameError> {
        let fits = (1..=20).contains(&text.len())
            && text.starts_with(|c: char| c.is_ascii_lowercase())
            && text
                .chars()
                .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-');
        if fits {
            Ok(Self(text))
        } else {
            Err(NameError(text))
        }
    }
}

impl std::str::FromStr for Name {
    type Err = NameError;

    fn from_str(text: &str) -> Result<Self, NameError> {
        Self::try_from(text.to_owned())
    }
}

impl From<Name> for String {
    fn from(name: Name) -> Self {
        name.0
    }
}

impl std::fmt::Display for Name {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

/// Clusters that can exist at one time; each has a /16 network of its own.
pub const NUMBERS: u8 = 100;
/// Nodes that a cluster can have.
pub const MOST_NODES: u8 = 9;

/// One local cluster.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Plan {
    /// The cluster's name.
    pub name: Name,
    /// Its number among the clusters of this machine.
    pub number: u8,
    /// How many nodes it has.
    pub nodes: u8,
    /// Where its state is.
    pub dir: PathBuf,
    /// CPUs that each node claims.
    pub node_cpus: u16,
    /// Directory of the programs that it runs.
    pub bin: PathBuf,
}

impl Plan {
    /// Second byte of all addresses.
    fn octet(&self) -> u16 {
        100 + u16::from(self.number)
    }

    /// How all addresses of the cluster begin.
    pub fn addresses(&self) -> String {
        format!("10.{}.", self.octet())
    }

    /// The network of the whole cluster.
    pub fn network(&self) -> String {
        format!("10.{}.0.0/16", self.octet())
    }

    /// Address of the host on the cluster's bridge; the API server listens there.
    pub fn gateway(&self) -> String {
        format!("10.{}.0.1", self.octet())
    }

    /// Network of Services.
    pub fn services(&self) -> String {
        format!("10.{}.240.0/20", self.octet())
    }

    /// First address of the Services' network: the API server's own Service.
    pub fn first_service(&self) -> String {
        format!("10.{}.240.1", self.octet())
    }

    /// Address of the name server's Service.
    pub fn dns_service(&self) -> String {
        format!("10.{}.240.10", self.octet())
    }

    /// URL of the API server.
    pub fn server(&self) -> String {
        format!("https://{}:6443", self.gateway())
    }

    /// A port on loopback; each cluster has ten of its own.
    pub fn port(&self, offset: u16) -> u16 {
        24_000 + u16::from(self.number) * 10 + offset
    }

    /// The host's bridge.
    pub fn bridge(&self) -> String {
        format!("vmk{}", self.number)
    }

    /// Cgroup of everything that runs for this cluster, below each hierarchy's root.
    pub fn cgroup(&self) -> String {
        format!("virtmark-{}", self.name)
    }

    /// Kubeconfig of the administrator.
    pub fn kubeconfig(&self) -> PathBuf {
        self.dir.join("kubeconfig")
    }

    /// Directory of log files.
    pub fn logs(&self) -> PathBuf {
        self.dir.join("logs")
    }

    /// The nodes, first one first.
    pub fn node_plans(&self) -> impl Iterator<Item = Node<'_>> {
        (1..=self.nodes).map(|number| Node { plan: self, number })
    }

    /// The node of that name.
    pub fn node(&self, name: &str) -> Option<Node<'_>> {
        self.node_plans().find(|node| node.name() == name)
    }
}

/// One node of a cluster.
#[derive(Clone, Copy, Debug)]
pub struct Node<'a> {
    /// The cluster.
    pub plan: &'a Plan,
    /// From 1.
    pub number: u8,
}

impl Node<'_> {
    /// Name in Kubernetes.
    pub fn name(&self) -> String {
        format!("node-{}", self.number)
    }

    /// Address on the cluster's bridge.
    pub fn address(&self) -> String {
        format!("10.{}.0.{}", self.plan.octet(), 10 + self.number)
    }

    /// Network of the node's pods.
    pub fn pods(&self) -> String {
        format!("10.{}.{}.0/24", self.plan.octet(), self.number)
    }

    /// The host's end of the node's cable.
    pub fn link(&self) -> String {
        format!("vmk{}n{}", self.plan.number, self.number)
    }

    /// Cgroup of the node's pods, below each hierarchy's root.
    pub fn cgroup(&self) -> String {
        format!("{}/{}", self.plan.cgroup(), self.name())
    }

    /// The node's own directory.
    pub fn dir(&self) -> PathBuf {
        self.plan.dir.join(self.name())
    }

    /// A file in it.
    pub fn file(&self, name: impl AsRef<Path>) -> PathBuf {
        self.dir().join(name)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use rstest::rstest;

    use super::*;

    fn plan(number: u8) -> Plan {
        Plan {
            name: Name::try_from("x".to_owned()).unwrap(),
            number,
            nodes: MOST_NODES,
            dir: PathBuf::from("/state/x"),
            node_cpus: 8,
            bin: PathBuf::from("/bin"),
        }
    }

    #[rstest]
    #[case("virtmark", true)]
    #[case("a", true)]
    #[case("", false)]
    #[case("1a", false)]
    #[case("Up", false)]
    #[case("../x", false)]
    #[case("a-very-long-name-too-long", false)]
    fn names(#[case] text: &str, #[case] fits: bool) {
        assert_eq!(Name::try_from(text.to_owned()).is_ok(), fits);
    }

    #[test]
    fn no_two_clusters_share_a_link_port_or_address() {
        let mut seen = BTreeSet::new();
        for number in 0..NUMBERS {
            let plan = plan(number);
            assert!(seen.insert(plan.bridge()));
            assert!(seen.insert(plan.gateway()));
            for offset in 0..10 {
                assert!(seen.insert(plan.port(offset).to_string()));
            }
            for node in plan.node_plans() {
                assert!(node.link().len() <= 15, "a link name has at most 15 bytes");
                assert!(seen.insert(node.link()));
                assert!(seen.insert(node.address()));
                assert!(seen.insert(node.pods()));
            }
        }
    }
}
