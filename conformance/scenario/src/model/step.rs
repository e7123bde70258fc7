//! The step words. A step does one thing; what came of it is judged from the journal later.

use regex::Regex;
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::{
    ids::{ClauseId, LocalId, MutantId},
    matcher::Matcher,
    model::object::{Deadline, ObjectRef},
    path::Path,
};

/// One thing that is done.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(try_from = "RawStep")]
pub struct Step {
    /// Its name in the scenario.
    pub id: LocalId,
    /// What is done.
    pub action: Action,
    /// What the answer must be.
    pub expectation: Expectation,
    /// The clause that an expected refusal tests.
    pub clause: Option<ClauseId>,
    /// Mutants that must turn this step red.
    pub mutants: Vec<MutantId>,
}

/// What a step does.
#[derive(Debug, Clone, PartialEq)]
pub enum Action {
    /// Server-side apply of a manifest.
    Apply(Write),
    /// POST of a manifest.
    Create(Write),
    /// Merge or JSON patch.
    Patch(Patch),
    /// Deletion.
    Delete(Delete),
    /// A call such as `start` or `pause`.
    Subresource(Subresource),
    /// Talk on the serial console.
    Console(Console),
    /// Read one object once.
    Get(Get),
    /// A barrier: later steps start when this has been seen.
    WaitFor(WaitFor),
    /// A barrier: later steps start when nothing has changed for a while.
    Settle(Settle),
    /// The machine process of a VMI dies, however the platform does that.
    KillMachine(KillMachine),
}

/// A manifest to be sent.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Write {
    /// The file under `scenarios/templates/`.
    #[serde(default)]
    pub template: Option<String>,
    /// Values for the template's parameters.
    #[serde(default)]
    pub with: Map<String, Value>,
    /// Start from the scenario's `base`.
    #[serde(default)]
    pub base: bool,
    /// A manifest written here.
    #[serde(default)]
    pub manifest: Option<Value>,
    /// Values put into the result, by path.
    #[serde(default)]
    pub set: Map<String, Value>,
    /// Paths taken out of the result.
    #[serde(default)]
    pub unset: Vec<Path>,
    /// `server`: ask, but store nothing.
    #[serde(default)]
    pub dry_run: Option<DryRun>,
}

/// The manifest that `base: true` refers to.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Source {
    /// The file under `scenarios/templates/`.
    pub template: String,
    /// Values for the template's parameters.
    #[serde(default)]
    pub with: Map<String, Value>,
}

/// Who simulates a write.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DryRun {
    /// The API server, admission included.
    Server,
}

/// A change to an object.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Patch {
    /// Kind of the object.
    pub kind: String,
    /// Its name.
    pub name: String,
    /// A namespace other than the scenario's own.
    #[serde(default)]
    pub namespace: Option<String>,
    /// A JSON merge patch.
    #[serde(default)]
    pub merge: Option<Value>,
    /// A JSON patch.
    #[serde(default)]
    pub json: Option<Vec<Value>>,
    /// `server`: ask, but store nothing.
    #[serde(default)]
    pub dry_run: Option<DryRun>,
}

/// A deletion.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Delete {
    /// Kind of the object.
    pub kind: String,
    /// Its name; without it, all that the selector takes.
    #[serde(default)]
    pub name: Option<String>,
    /// Labels of the objects.
    #[serde(default)]
    pub selector: Option<crate::selector::Selector>,
    /// What happens to dependents.
    #[serde(default)]
    pub propagation: Option<Propagation>,
    /// Overrides the grace period.
    #[serde(default)]
    pub grace_period_seconds: Option<u32>,
}

/// What happens to dependents of a deleted object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
pub enum Propagation {
    /// Deleted later.
    Background,
    /// Deleted first.
    Foreground,
    /// Kept.
    Orphan,
}

/// A call on a subresource.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Subresource {
    /// Whose subresource.
    pub resource: Resource,
    /// Name of the object.
    pub name: String,
    /// `start`, `stop`, `restart`, `pause`, `unpause`, …
    pub verb: String,
    /// The body of the call.
    #[serde(default)]
    pub options: Option<Value>,
}

/// The two resources that have subresources.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
pub enum Resource {
    /// `virtualmachines`
    VirtualMachine,
    /// `virtualmachineinstances`
    VirtualMachineInstance,
}

impl Resource {
    /// The plural name in URLs.
    pub fn plural(self) -> &'static str {
        match self {
            Self::VirtualMachine => "virtualmachines",
            Self::VirtualMachineInstance => "virtualmachineinstances",
        }
    }
}

/// Talk on the serial console. The first use of a client's name opens its session.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Console {
    /// The VMI.
    pub vmi: String,
    /// The client's name; two names are two sessions.
    #[serde(default = "default_client")]
    pub client: String,
    /// Text to send; a line end is added when it has none.
    #[serde(default)]
    pub send: Option<String>,
    /// Send it again every few seconds until the expected text arrives, as a person does whose guest
    /// is still booting.
    #[serde(default)]
    pub insist: bool,
    /// Text that must arrive, as a regular expression over what arrived since this step began.
    #[serde(default, deserialize_with = "optional_regex")]
    pub expect: Option<Regex>,
    /// The session must be closed by the other side.
    #[serde(default)]
    pub expect_closed: bool,
    /// How long to wait for that.
    pub within: Deadline,
}

fn default_client() -> String {
    "main".to_owned()
}

fn optional_regex<'de, D: serde::Deserializer<'de>>(input: D) -> Result<Option<Regex>, D::Error> {
    let text = Option::<String>::deserialize(input)?;
    text.map(|text| Regex::new(&text))
        .transpose()
        .map_err(serde::de::Error::custom)
}

impl PartialEq for Console {
    fn eq(&self, other: &Self) -> bool {
        let expect = |console: &Self| console.expect.as_ref().map(Regex::to_string);
        self.vmi == other.vmi
            && self.client == other.client
            && self.send == other.send
            && self.insist == other.insist
            && expect(self) == expect(other)
            && self.expect_closed == other.expect_closed
            && self.within == other.within
    }
}

/// Read one object once.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Get {
    /// Kind of the object.
    pub kind: String,
    /// Its name.
    pub name: String,
    /// A namespace other than the scenario's own.
    #[serde(default)]
    pub namespace: Option<String>,
}

/// Wait until an object is seen as described, or gone.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct WaitFor {
    /// Which object.
    pub object: ObjectRef,
    /// How it must be; without it, it must exist.
    #[serde(default, rename = "match")]
    pub matching: Option<Matcher>,
    /// It must not exist.
    #[serde(default)]
    pub gone: bool,
    /// How long.
    pub within: Deadline,
}

/// Wait until objects stop changing.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Settle {
    /// Kinds that must be quiet.
    pub kinds: Vec<String>,
    /// How long they must be quiet; 1s when not given.
    #[serde(
        default = "default_quiet",
        deserialize_with = "crate::duration::deserialize"
    )]
    pub quiet: std::time::Duration,
    /// How long to wait for that.
    pub within: Deadline,
}

fn default_quiet() -> std::time::Duration {
    std::time::Duration::from_secs(1)
}

/// The machine process of a VMI dies.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct KillMachine {
    /// The VMI.
    pub vmi: String,
}

/// What the answer to a step must be.
#[derive(Debug, Clone, PartialEq)]
pub enum Expectation {
    /// Any 2xx; the default.
    Accepted,
    /// A certain code, a certain body.
    Reply {
        /// The code; any 2xx without it.
        code: Option<u16>,
        /// What the body must hold.
        body: Option<Matcher>,
    },
    /// A refusal, by whom and why.
    Refused(Rejection),
}

/// A refusal, by whom and why.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Rejection {
    /// HTTP code.
    pub code: u16,
    /// `reason` of the Status; absent means the Status must have none.
    #[serde(default)]
    pub reason: Option<String>,
    /// Which layer refused.
    pub by: Layer,
    /// Causes that the Status must list.
    #[serde(default)]
    pub causes: Vec<Cause>,
    /// Text that the message must contain.
    #[serde(default)]
    pub message: Option<String>,
}

/// Which layer of the API refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Layer {
    /// The kind's own schema.
    Schema,
    /// An admission webhook or policy.
    Admission,
    /// Authorisation.
    Rbac,
    /// A quota.
    Quota,
    /// The aggregated API that serves the call.
    Subresource,
}

/// One cause in a Status.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Cause {
    /// Path of the field.
    pub field: String,
    /// `reason` of the cause.
    #[serde(default)]
    pub reason: Option<String>,
}

/// A step as it is typed: one word among many optional ones.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct RawStep {
    id: LocalId,
    apply: Option<Write>,
    create: Option<Write>,
    patch: Option<Patch>,
    delete: Option<Delete>,
    subresource: Option<Subresource>,
    console: Option<Console>,
    get: Option<Get>,
    wait_for: Option<WaitFor>,
    settle: Option<Settle>,
    kill_machine: Option<KillMachine>,
    expect: Option<RawExpect>,
    expect_rejection: Option<Rejection>,
    clause: Option<ClauseId>,
    #[serde(default)]
    mutants: Vec<MutantId>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum RawExpect {
    Word(RawAccepted),
    Reply(RawReply),
}

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum RawAccepted {
    Accepted,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawReply {
    code: Option<u16>,
    #[serde(rename = "match")]
    body: Option<Matcher>,
}

impl TryFrom<RawStep> for Step {
    type Error = String;

    fn try_from(raw: RawStep) -> Result<Self, String> {
        let id = raw.id;
        let words = [
            raw.apply.map(Action::Apply),
            raw.create.map(Action::Create),
            raw.patch.map(Action::Patch),
            raw.delete.map(Action::Delete),
            raw.subresource.map(Action::Subresource),
            raw.console.map(Action::Console),
            raw.get.map(Action::Get),
            raw.wait_for.map(Action::WaitFor),
            raw.settle.map(Action::Settle),
            raw.kill_machine.map(Action::KillMachine),
        ];
        let mut given = words.into_iter().flatten();
        let (Some(action), None) = (given.next(), given.next()) else {
            return Err(format!("step {id} must have exactly one of the step words"));
        };
        let expectation = match (raw.expect, raw.expect_rejection) {
            (None, None) | (Some(RawExpect::Word(RawAccepted::Accepted)), None) => {
                Expectation::Accepted
            }
            (Some(RawExpect::Reply(reply)), None) => Expectation::Reply {
                code: reply.code,
                body: reply.body,
            },
            (None, Some(rejection)) => Expectation::Refused(rejection),
            (Some(_), Some(_)) => {
                return Err(format!("step {id} has both expect and expectRejection"));
            }
        };
        if !action.has_reply() && expectation != Expectation::Accepted {
            return Err(format!("step {id} has no answer that could be expected"));
        }
        Ok(Self {
            id,
            action,
            expectation,
            clause: raw.clause,
            mutants: raw.mutants,
        })
    }
}

impl Action {
    /// Whether the API server answers to it.
    pub fn has_reply(&self) -> bool {
        !matches!(
            self,
            Self::Console(_) | Self::WaitFor(_) | Self::Settle(_) | Self::KillMachine(_)
        )
    }

    /// The word as it is written.
    pub fn word(&self) -> &'static str {
        match self {
            Self::Apply(_) => "apply",
            Self::Create(_) => "create",
            Self::Patch(_) => "patch",
            Self::Delete(_) => "delete",
            Self::Subresource(_) => "subresource",
            Self::Console(_) => "console",
            Self::Get(_) => "get",
            Self::WaitFor(_) => "waitFor",
            Self::Settle(_) => "settle",
            Self::KillMachine(_) => "killMachine",
        }
    }
}

impl Step {
    /// Whether this step must be refused.
    pub fn is_negative(&self) -> bool {
        matches!(self.expectation, Expectation::Refused(_))
    }

    /// Whether this step is checked beyond "it was accepted", so that it needs mutants of its own.
    pub fn is_check(&self) -> bool {
        match &self.action {
            Action::Console(console) => console.expect.is_some() || console.expect_closed,
            _ => self.expectation != Expectation::Accepted,
        }
    }
}
