//! Nodes: one whose virt-handler fell silent takes no more VMs.

mod decide;

use std::sync::Arc;

use k8s_openapi::{api::core::v1::Node, jiff::Timestamp};
use kube::{
    Api, ResourceExt as _,
    api::{Patch, PatchParams},
    runtime::controller::Action,
};
use kubevirt_api::names;
use serde_json::json;
use virt_kit::{events::EventType, retry};

use self::decide::Verdict;
use crate::{
    context::Context,
    queue::{ReconcileError, reference},
};

/// Looks at one node.
pub(crate) async fn reconcile(context: Arc<Context>, node: Node) -> Result<Action, ReconcileError> {
    match decide::decide(&node, Timestamp::now()) {
        Verdict::NotOurs => Ok(Action::await_change()),
        Verdict::Alive { look_again } => Ok(Action::requeue(look_again)),
        Verdict::Silent => {
            close(&context, &node).await?;
            Ok(Action::await_change())
        }
    }
}

async fn close(context: &Context, node: &Node) -> Result<(), ReconcileError> {
    let api: Api<Node> = Api::all(context.client.clone());
    // Bound to the version that was judged: a heartbeat in between wins.
    let patch = json!({"metadata": {
        "resourceVersion": node.resource_version(),
        "labels": {names::LABEL_SCHEDULABLE: "false"}
    }});
    let params = PatchParams::default();
    match api
        .patch(&node.name_any(), &params, &Patch::Merge(patch))
        .await
    {
        Ok(_) => {}
        Err(error) if retry::is_conflict(&error) || retry::is_not_found(&error) => return Ok(()),
        Err(error) => {
            return Err(ReconcileError::api("mark the node as not schedulable")(
                error,
            ));
        }
    }
    context.tell(
        reference::<Node, _>(node),
        EventType::Normal,
        "NodeUnresponsive",
        "virt-handler is not responsive, marking node as unresponsive".to_owned(),
    );
    Ok(())
}
