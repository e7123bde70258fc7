//! Whether `pause`, `unpause`, `softreboot`, `reset` and `console` make sense for a machine in its
//! state. Pure; virt-handler does the rest.

use kubevirt_api::v1::{VirtualMachineInstance, VirtualMachineInstancePhase as Phase, condition};

use super::refusal::{Kind, Refusal};

/// A call on a VMI.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verb {
    /// Stop its CPUs.
    Pause,
    /// Let its CPUs go on.
    Unpause,
    /// Ask the guest to reboot.
    SoftReboot,
    /// Press the reset button.
    Reset,
}

impl Verb {
    /// The call with that name in the path.
    #[must_use]
    pub fn parse(word: &str) -> Option<Self> {
        match word {
            "pause" => Some(Self::Pause),
            "unpause" => Some(Self::Unpause),
            "softreboot" => Some(Self::SoftReboot),
            "reset" => Some(Self::Reset),
            _ => None,
        }
    }

    /// The word in paths.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pause => "pause",
            Self::Unpause => "unpause",
            Self::SoftReboot => "softreboot",
            Self::Reset => "reset",
        }
    }
}

/// Why a call does not fit the machine's state.
pub fn check(verb: Verb, vmi: &VirtualMachineInstance) -> Result<(), Refusal> {
    let conflict = |why: &str| Err(Refusal::conflict(Kind::Vmi, name(vmi), why));
    let runs = phase(vmi) == Phase::Running;
    match verb {
        Verb::Pause if !runs => conflict("VM is not running"),
        Verb::Pause if has_liveness_probe(vmi) => Err(Refusal::forbidden(
            Kind::Vmi,
            name(vmi),
            "Pausing VMIs with LivenessProbe is currently not supported",
        )),
        Verb::Pause if has(vmi, "Paused") => conflict("VMI is already paused"),
        Verb::Unpause if !runs => conflict("VMI is not running"),
        Verb::Unpause if !has(vmi, "Paused") => conflict("VMI is not paused"),
        Verb::SoftReboot if !runs => conflict("VM is not running"),
        Verb::SoftReboot if has(vmi, "Paused") => conflict("VMI is paused"),
        Verb::SoftReboot if !hears(vmi) => {
            conflict("VMI neither have the agent connected nor the ACPI feature enabled")
        }
        Verb::Reset if !runs => Err(Refusal::bad_request(format!(
            "Failed to reset non-running VMI with phase {0}: Unable to connect to VirtualMachineInstance because phase is {0} instead of Running or Scheduled",
            phase(vmi).as_str()
        ))),
        Verb::Pause | Verb::Unpause | Verb::SoftReboot | Verb::Reset => Ok(()),
    }
}

/// Why there is no serial console to be had.
pub fn check_console(vmi: &VirtualMachineInstance) -> Result<(), Refusal> {
    if vmi.spec.domain.devices.autoattach_serial_console == Some(false) {
        return Err(Refusal::bad_request("No serial consoles are present."));
    }
    match phase(vmi) {
        Phase::Running => Ok(()),
        Phase::Failed => Err(Refusal::conflict(
            Kind::Vmi,
            name(vmi),
            "VMI is in failed status",
        )),
        _ => Err(Refusal::bad_request("VMI is not running")),
    }
}

fn name(vmi: &VirtualMachineInstance) -> &str {
    vmi.metadata.name.as_deref().unwrap_or_default()
}

fn phase(vmi: &VirtualMachineInstance) -> Phase {
    vmi.status
        .as_ref()
        .and_then(|status| status.phase)
        .unwrap_or_default()
}

fn has(vmi: &VirtualMachineInstance, type_: &str) -> bool {
    vmi.status
        .as_ref()
        .and_then(|status| condition::find(status.conditions.as_deref()?, type_))
        .is_some_and(condition::Condition::is_true)
}

/// A probe from outside would fail while the machine is paused, and end it.
fn has_liveness_probe(vmi: &VirtualMachineInstance) -> bool {
    let probe = vmi.spec.liveness_probe.as_ref();
    probe.is_some_and(|probe| probe.guest_agent_ping.is_none())
}

/// Whether the guest has a way to hear of a wish to reboot.
fn hears(vmi: &VirtualMachineInstance) -> bool {
    let acpi = vmi
        .spec
        .domain
        .features
        .as_ref()
        .and_then(|f| f.acpi.as_ref());
    has(vmi, "AgentConnected") || acpi.is_none_or(|acpi| acpi.enabled.unwrap_or(true))
}

#[cfg(test)]
mod tests {
    use kubevirt_api::v1::{
        Condition, FeatureState, Features, Probe, VirtualMachineInstanceStatus,
    };
    use rstest::rstest;

    use super::*;

    fn vmi(phase: Phase, conditions: &[&str]) -> VirtualMachineInstance {
        let mut vmi = VirtualMachineInstance {
            status: Some(VirtualMachineInstanceStatus {
                phase: Some(phase),
                conditions: Some(
                    conditions
                        .iter()
                        .map(|c| Condition::new(c, true, "", ""))
                        .collect(),
                ),
                ..VirtualMachineInstanceStatus::default()
            }),
            ..VirtualMachineInstance::default()
        };
        vmi.metadata.name = Some("a".to_owned());
        vmi
    }

    #[rstest]
    #[case(Verb::Pause, Phase::Running, &[], None)]
    #[case(Verb::Pause, Phase::Scheduled, &[], Some("VM is not running"))]
    #[case(Verb::Pause, Phase::Running, &["Paused"], Some("VMI is already paused"))]
    #[case(Verb::Unpause, Phase::Running, &["Paused"], None)]
    #[case(Verb::Unpause, Phase::Running, &[], Some("VMI is not paused"))]
    #[case(Verb::Unpause, Phase::Succeeded, &[], Some("VMI is not running"))]
    #[case(Verb::SoftReboot, Phase::Running, &[], None)]
    #[case(Verb::SoftReboot, Phase::Running, &["Paused"], Some("VMI is paused"))]
    #[case(Verb::SoftReboot, Phase::Pending, &[], Some("VM is not running"))]
    #[case(Verb::Reset, Phase::Running, &["Paused"], None)]
    fn calls_fit_the_state(
        #[case] verb: Verb,
        #[case] phase: Phase,
        #[case] conditions: &[&str],
        #[case] why: Option<&str>,
    ) {
        let expected = why.map_or(Ok(()), |why| Err(Refusal::conflict(Kind::Vmi, "a", why)));
        assert_eq!(check(verb, &vmi(phase, conditions)), expected);
    }

    #[test]
    fn reset_of_what_does_not_run_is_a_bad_request() {
        let refusal = check(Verb::Reset, &vmi(Phase::Scheduling, &[])).unwrap_err();
        assert_eq!(refusal.code(), 400);
        assert!(
            refusal
                .message()
                .starts_with("Failed to reset non-running VMI with phase Scheduling: ")
        );
    }

    #[rstest]
    #[case::from_outside(Probe::default(), Some(403))]
    #[case::by_the_agent(Probe { guest_agent_ping: Some(kubevirt_api::v1::GuestAgentPing {}), ..Probe::default() }, None)]
    fn a_liveness_probe_forbids_the_pause(#[case] probe: Probe, #[case] code: Option<u16>) {
        let mut vmi = vmi(Phase::Running, &[]);
        vmi.spec.liveness_probe = Some(probe);
        assert_eq!(check(Verb::Pause, &vmi).err().map(|r| r.code()), code);
    }

    #[rstest]
    #[case(&[], Some(409))]
    #[case(&["AgentConnected"], None)]
    fn a_guest_that_hears_nothing_cannot_be_asked(
        #[case] conditions: &[&str],
        #[case] code: Option<u16>,
    ) {
        let mut vmi = vmi(Phase::Running, conditions);
        vmi.spec.domain.features = Some(Features {
            acpi: Some(FeatureState {
                enabled: Some(false),
            }),
            smm: None,
        });
        assert_eq!(check(Verb::SoftReboot, &vmi).err().map(|r| r.code()), code);
    }

    #[rstest]
    #[case(Phase::Running, None, None)]
    #[case(Phase::Running, Some(false), Some("No serial consoles are present."))]
    #[case(Phase::Scheduled, None, Some("VMI is not running"))]
    #[case(
        Phase::Failed,
        None,
        Some(
            "Operation cannot be fulfilled on virtualmachineinstance.kubevirt.io \"a\": VMI is in failed status"
        )
    )]
    fn consoles_are_of_running_machines(
        #[case] phase: Phase,
        #[case] serial: Option<bool>,
        #[case] why: Option<&str>,
    ) {
        let mut vmi = vmi(phase, &[]);
        vmi.spec.domain.devices.autoattach_serial_console = serial;
        let found = check_console(&vmi).err();
        assert_eq!(found.as_ref().map(Refusal::message), why);
    }
}
