//! VirtualMachine: decides when its VirtualMachineInstance exists, and tells how it is.
//!
//! `observe` gathers, `decide` thinks (no I/O, all of the state machine), `apply` acts.

mod apply;
mod backoff;
mod build;
mod decide;
mod observe;
mod requests;
mod status;
mod strategy;

use std::sync::Arc;

use kube::runtime::controller::Action;
use kubevirt_api::v1::VirtualMachine;

use crate::{context::Context, queue::ReconcileError};

/// Brings one VM a step further.
pub(crate) async fn reconcile(
    context: Arc<Context>,
    vm: VirtualMachine,
) -> Result<Action, ReconcileError> {
    let observed = observe::observe(&context, vm);
    let plan = decide::decide(&observed);
    apply::apply(&context, &observed, plan).await
}
