//! Carries out a plan for a VM, step by step. A step that finds the world changed ends the pass: the
//! event of that change starts the next one.

use kube::{
    Api, ResourceExt as _,
    api::{DeleteParams, PostParams, Preconditions},
    runtime::controller::Action,
};
use kubevirt_api::v1::{VirtualMachine, VirtualMachineInstance, VirtualMachineStatus};
use virt_kit::{events::EventType, retry};

use super::{
    decide::{Plan, Step},
    observe::Observed,
    status,
};
use crate::{
    context::Context,
    patch::{self, Target, Written},
    queue::{ReconcileError, reference, said},
};

struct Hands<'a> {
    context: &'a Context,
    observed: &'a Observed,
    vms: Api<VirtualMachine>,
    vmis: Api<VirtualMachineInstance>,
    /// The VM as the last write left it.
    vm: VirtualMachine,
}

/// Whether the pass may go on.
#[derive(PartialEq)]
enum Pass {
    GoOn,
    End,
}

/// Carries out the plan.
pub(super) async fn apply(
    context: &Context,
    observed: &Observed,
    plan: Plan,
) -> Result<Action, ReconcileError> {
    let namespace = observed.vm.namespace().unwrap_or_default();
    let mut hands = Hands {
        context,
        observed,
        vms: Api::namespaced(context.client.clone(), &namespace),
        vmis: Api::namespaced(context.client.clone(), &namespace),
        vm: observed.vm.clone(),
    };
    for step in plan.steps {
        if hands.carry_out(step).await? == Pass::End {
            return Ok(Action::await_change());
        }
    }
    Ok(plan
        .again
        .map_or_else(Action::await_change, Action::requeue))
}

impl Hands<'_> {
    async fn carry_out(&mut self, step: Step) -> Result<Pass, ReconcileError> {
        match step {
            Step::WriteVm(vm) => self.write_vm(&vm).await,
            Step::WriteStatus(status) => self.write_status(*status).await,
            Step::WriteVmi { old, new } => {
                let written = patch::write(&self.vmis, Target::Object, &old, &new).await;
                Ok(pass(
                    &written.map_err(ReconcileError::api("update the VMI"))?,
                ))
            }
            Step::CreateVmi(vmi) => self.create(&vmi).await,
            Step::DeleteVmi { uid } => self.delete(&uid).await,
        }
    }

    async fn write_vm(&mut self, new: &VirtualMachine) -> Result<Pass, ReconcileError> {
        let written = patch::write(&self.vms, Target::Object, &self.vm, new)
            .await
            .map_err(ReconcileError::api("update the VM"))?;
        Ok(self.keep(written))
    }

    async fn write_status(&mut self, status: VirtualMachineStatus) -> Result<Pass, ReconcileError> {
        let new = VirtualMachine {
            status: Some(status),
            ..self.vm.clone()
        };
        let written = patch::write(&self.vms, Target::Status, &self.vm, &new)
            .await
            .map_err(ReconcileError::api("update the status of the VM"))?;
        Ok(self.keep(written))
    }

    fn keep(&mut self, written: Written<VirtualMachine>) -> Pass {
        let pass = pass(&written);
        if let Written::Done(vm) = written {
            self.vm = *vm;
        }
        pass
    }

    /// The store may lag behind a stop or a deletion: the server's own VM has the last word.
    async fn is_current(&self) -> Result<bool, ReconcileError> {
        let current = self
            .vms
            .get_metadata_opt(&self.vm.name_any())
            .await
            .map_err(ReconcileError::api("look at the VM"))?;
        Ok(current.is_some_and(|current| {
            current.metadata.deletion_timestamp.is_none()
                && current.metadata.uid == self.vm.metadata.uid
                && current.metadata.generation == self.vm.metadata.generation
        }))
    }

    async fn create(&mut self, vmi: &VirtualMachineInstance) -> Result<Pass, ReconcileError> {
        if !self.is_current().await? {
            return Ok(Pass::End);
        }
        match self.vmis.create(&PostParams::default(), vmi).await {
            Ok(_) => {
                self.tell(
                    EventType::Normal,
                    "SuccessfulCreate",
                    format!(
                        "Started the virtual machine by creating the new virtual machine instance {}",
                        vmi.name_any()
                    ),
                );
                Ok(Pass::GoOn)
            }
            // Ours, which the store does not show yet, or one that is on its way out: its events
            // start the next pass.
            Err(error) if retry::is_conflict(&error) => Ok(Pass::End),
            Err(error) => {
                let text = format!("Error creating virtual machine instance: {}", said(&error));
                self.fail("FailedCreate", text).await?;
                Err(ReconcileError::api("create the VMI")(error))
            }
        }
    }

    async fn delete(&mut self, uid: &str) -> Result<Pass, ReconcileError> {
        let params = DeleteParams {
            preconditions: Some(Preconditions {
                uid: Some(uid.to_owned()),
                resource_version: None,
            }),
            ..DeleteParams::default()
        };
        match self.vmis.delete(&self.vm.name_any(), &params).await {
            Ok(_) => {
                self.tell(
                    EventType::Normal,
                    "SuccessfulDelete",
                    format!(
                        "Stopped the virtual machine by deleting the virtual machine instance {uid}"
                    ),
                );
                Ok(Pass::GoOn)
            }
            Err(error) if retry::is_not_found(&error) || retry::is_conflict(&error) => {
                Ok(Pass::End)
            }
            Err(error) => {
                let text = format!(
                    "Error deleting virtual machine instance {uid}: {}",
                    said(&error)
                );
                self.fail("FailedDelete", text).await?;
                Err(ReconcileError::api("delete the VMI")(error))
            }
        }
    }

    async fn fail(&mut self, reason: &'static str, text: String) -> Result<(), ReconcileError> {
        let status = status::with_failure(&self.vm, reason, &text, &self.observed.now);
        self.tell(EventType::Warning, reason, text);
        self.write_status(status).await.map(drop)
    }

    fn tell(&self, type_: EventType, reason: &'static str, text: String) {
        let about = reference::<VirtualMachine, _>(&self.vm);
        self.context.tell(about, type_, reason, text);
    }
}

fn pass<K>(written: &Written<K>) -> Pass {
    match written {
        Written::Unchanged | Written::Done(_) => Pass::GoOn,
        Written::Overtaken => Pass::End,
    }
}
