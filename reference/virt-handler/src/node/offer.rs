//! Whether the scheduler can see what the device plugins offer. The kubelet tells it with its next
//! report, seconds after a plugin has registered; a VM that comes sooner would be unschedulable.

use std::{collections::BTreeMap, path::Path, time::Duration};

use k8s_openapi::{api::core::v1::Node, apimachinery::pkg::api::resource::Quantity};
use kube::{Api, Client};
use tracing::debug;

use crate::device_plugin::standard_resources;

/// Time between two looks.
const AGAIN: Duration = Duration::from_millis(500);

/// Resources whose device exists on this node.
#[must_use]
pub fn expected(host_root: &Path) -> Vec<&'static str> {
    standard_resources(1)
        .into_iter()
        .filter(|resource| resource.path_under(host_root).exists())
        .map(|resource| resource.resource)
        .collect()
}

/// Returns once the node offers at least one of each; the caller bounds the wait.
pub async fn seen(client: &Client, node: &str, wanted: &[&str]) {
    let nodes: Api<Node> = Api::all(client.clone());
    loop {
        match nodes.get(node).await {
            Ok(node) => {
                let status = node.status.unwrap_or_default();
                if offers(&status.allocatable.unwrap_or_default(), wanted) {
                    return;
                }
            }
            Err(error) => debug!(%error, "failed to read the node"),
        }
        tokio::time::sleep(AGAIN).await;
    }
}

fn offers(allocatable: &BTreeMap<String, Quantity>, wanted: &[&str]) -> bool {
    wanted
        .iter()
        .all(|name| allocatable.get(*name).is_some_and(|count| count.0 != "0"))
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case::not_reported_yet(&[], false)]
    #[case::one_missing(&[("kvm", "1k")], false)]
    #[case::registered_but_unhealthy(&[("kvm", "1k"), ("tun", "0")], false)]
    #[case::both(&[("kvm", "1k"), ("tun", "1k")], true)]
    fn what_the_scheduler_sees(#[case] allocatable: &[(&str, &str)], #[case] want: bool) {
        let allocatable = allocatable
            .iter()
            .map(|(name, count)| ((*name).to_owned(), Quantity((*count).to_owned())))
            .collect();
        assert_eq!(offers(&allocatable, &["kvm", "tun"]), want);
    }

    #[test]
    fn only_devices_that_exist_are_expected() {
        let root = tempfile::tempdir().unwrap();
        std::fs::create_dir(root.path().join("dev")).unwrap();
        std::fs::write(root.path().join("dev/kvm"), "").unwrap();
        assert_eq!(expected(root.path()), ["devices.kubevirt.io/kvm"]);
    }
}
