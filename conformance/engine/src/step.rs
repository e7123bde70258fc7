//! The step words, one file each. A step does its thing, writes down what came of it, and says whether the next one
//! makes sense; whether the platform is right is not decided here.

mod console;
mod delete;
mod get;
mod kill_machine;
mod patch;
mod settle;
mod subresource;
mod wait_for;
mod write;

use conformance_journal::{
    Event,
    entry::{Outcome, Phase},
};
use conformance_scenario::model::{Action, Expectation, Step};

use crate::{
    stage::Stage,
    wire::{CallError, Reply},
};

/// How a step went.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Went {
    /// As wanted.
    Well,
    /// Not as wanted.
    Unexpected(String),
    /// The deadline passed.
    TooLate(String),
    /// It could not be done.
    Broken(String),
    /// The operator wanted an end; the step has none in the journal, and nobody may take it for done.
    Interrupted,
}

impl Went {
    /// For what our own side could not do.
    fn broken(error: impl std::fmt::Display) -> Self {
        Self::Broken(error.to_string())
    }

    fn entry(self, step: &Step) -> Option<Event> {
        let (outcome, detail) = match self {
            Self::Well => (Outcome::Ok, None),
            Self::Unexpected(why) => (Outcome::Unexpected, Some(why)),
            Self::TooLate(why) => (Outcome::Timeout, Some(why)),
            Self::Broken(why) => (Outcome::Error, Some(why)),
            Self::Interrupted => return None,
        };
        Some(Event::Step {
            step: step.id.as_str().to_owned(),
            phase: Phase::End,
            outcome: Some(outcome),
            detail,
        })
    }
}

/// Does one step.
pub async fn run(stage: &Stage, step: &Step) -> Went {
    stage.log.write(Event::Step {
        step: step.id.as_str().to_owned(),
        phase: Phase::Begin,
        outcome: None,
        detail: None,
    });
    let acting = act(stage, step);
    let went = stage.shared.stop.run_until_cancelled(acting).await;
    let went = went.unwrap_or(Went::Interrupted);
    if let Some(entry) = went.clone().entry(step) {
        stage.log.write(entry);
    }
    went
}

async fn act(stage: &Stage, step: &Step) -> Went {
    match &step.action {
        Action::Apply(write) => write::apply(stage, step, write).await,
        Action::Create(write) => write::create(stage, step, write).await,
        Action::Patch(patch) => patch::run(stage, step, patch).await,
        Action::Delete(delete) => delete::run(stage, step, delete).await,
        Action::Subresource(call) => subresource::run(stage, step, call).await,
        Action::Console(talk) => console::run(stage, step, talk).await,
        Action::Get(get) => get::run(stage, step, get).await,
        Action::WaitFor(wait) => wait_for::run(stage, step, wait).await,
        Action::Settle(settle) => settle::run(stage, step, settle).await,
        Action::KillMachine(kill) => kill_machine::run(stage, step, kill).await,
    }
}

/// Whether the answer is near enough to what was expected to go on.
fn compare(expected: &Expectation, answer: Result<Reply, CallError>) -> Went {
    let reply = match answer {
        Ok(reply) => reply,
        Err(error) => return Went::Broken(error.text()),
    };
    let told = || format!("answered with {} {}", reply.code, reply.message());
    let as_wanted = match expected {
        Expectation::Accepted => reply.is_success(),
        Expectation::Reply { code, body } => {
            code.map_or(reply.is_success(), |code| code == reply.code)
                && body
                    .as_ref()
                    .is_none_or(|matcher| matcher.matches(&reply.body))
        }
        Expectation::Refused(refusal) => reply.code == refusal.code,
    };
    if as_wanted {
        Went::Well
    } else {
        Went::Unexpected(told())
    }
}

#[cfg(test)]
mod tests {
    use conformance_scenario::model::{Rejection, step::Layer};
    use rstest::rstest;
    use serde_json::{Value, json};

    use super::*;

    fn refused(code: u16) -> Expectation {
        Expectation::Refused(Rejection {
            code,
            reason: None,
            by: Layer::Admission,
            causes: Vec::new(),
            message: None,
        })
    }

    fn reply(code: Option<u16>) -> Expectation {
        let body = serde_json::from_value(json!({"a": 1})).unwrap();
        Expectation::Reply {
            code,
            body: Some(body),
        }
    }

    #[rstest]
    #[case(Expectation::Accepted, 202, Value::Null, true)]
    #[case(Expectation::Accepted, 409, Value::Null, false)]
    #[case(refused(422), 422, Value::Null, true)]
    #[case(refused(422), 201, Value::Null, false)]
    #[case(reply(None), 200, json!({"a": 1}), true)]
    #[case(reply(None), 404, json!({"a": 1}), false)]
    #[case(reply(Some(404)), 404, json!({"a": 1}), true)]
    #[case(reply(None), 200, json!({"a": 2}), false)]
    fn answers_are_compared(
        #[case] expected: Expectation,
        #[case] code: u16,
        #[case] body: Value,
        #[case] well: bool,
    ) {
        let answer = Ok(Reply {
            code,
            body,
            warnings: Vec::new(),
        });
        assert_eq!(compare(&expected, answer) == Went::Well, well);
    }

    #[test]
    fn no_answer_is_our_trouble_and_not_the_platforms() {
        let late = CallError::Late(std::time::Duration::from_secs(1));
        assert!(matches!(
            compare(&Expectation::Accepted, Err(late)),
            Went::Broken(_)
        ));
    }
}
