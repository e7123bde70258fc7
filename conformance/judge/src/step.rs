//! One question for each step word: did it do what it must, as far as the history tells.

use conformance_journal::entry::{ConsoleWhat, Outcome};
use conformance_scenario::{
    Scenario,
    model::{
        Action, Expectation, ObjectRef, Step,
        assertion::State,
        step::{Console, Settle, WaitFor},
    },
};

use crate::{
    assertion::{Ask, absent, eventually, settles},
    explain::about,
    finding::Finding,
    history::{Answer, History, Said, StepSpan, Window},
    limits::Limits,
    reply,
    verdict::{Blame, Explanation},
};

/// Asks about a step.
pub(crate) fn ask_step(
    history: &History<'_>,
    limits: &Limits,
    scenario: &Scenario,
    step: &Step,
) -> Finding {
    let Some(span) = history.step(step.id.as_str()) else {
        return Finding::NotReached {
            point: step.id.to_string(),
        };
    };
    if span.outcome == Some(Outcome::Error) {
        let why = span
            .detail
            .unwrap_or("the engine could not do it")
            .to_owned();
        return Finding::Broken {
            why,
            blame: Blame::Harness,
        };
    }
    let ask = Ask {
        history,
        limits,
        window: step_window(history, span),
    };
    match &step.action {
        Action::WaitFor(wait) => wait_for(ask, wait),
        Action::Settle(settle) => settle_down(ask, settle),
        Action::Console(console) => talk(ask, console),
        Action::KillMachine(_) => done(ask, span),
        _ => answered(ask, span, scenario, step),
    }
}

/// A barrier may come true at any time up to the end of recording; its own deadline bounds it.
fn step_window(history: &History<'_>, span: &StepSpan<'_>) -> Window {
    Window {
        from: span.begin,
        to: history.end,
        closed: history.ended.is_some(),
        to_end: true,
    }
}

fn wait_for(ask: Ask<'_, '_>, wait: &WaitFor) -> Finding {
    if let Some(broken) = ask.unrecorded(&wait.object.kind) {
        return broken;
    }
    if wait.gone {
        return absent(ask, &wait.object, &wait.within);
    }
    let state = State {
        object: wait.object.clone(),
        matching: wait.matching.clone(),
    };
    eventually(ask, &state, None, &wait.within)
}

fn settle_down(ask: Ask<'_, '_>, settle: &Settle) -> Finding {
    if let Some(broken) = settle.kinds.iter().find_map(|kind| ask.unrecorded(kind)) {
        return broken;
    }
    let of_kind = |kind: &String| ObjectRef {
        kind: kind.clone(),
        name: None,
        selector: None,
        namespace: None,
    };
    let objects: Vec<ObjectRef> = settle.kinds.iter().map(of_kind).collect();
    settles(ask, &objects, settle.quiet, &settle.within)
}

/// A step that the engine does by itself: only it knows.
fn done(ask: Ask<'_, '_>, span: &StepSpan<'_>) -> Finding {
    match (span.end, span.outcome) {
        (Some(end), Some(Outcome::Ok)) => Finding::Held {
            at: end.t,
            index: end.index,
            used: None,
        },
        (Some(_), _) => {
            let why = span.detail.unwrap_or("it was not done").to_owned();
            Finding::Broken {
                why,
                blame: Blame::Environment,
            }
        }
        (None, _) if ask.window.closed => Finding::unknown("it was not finished"),
        (None, _) => Finding::Open,
    }
}

fn talk(ask: Ask<'_, '_>, console: &Console) -> Finding {
    let (budget, deadline) = ask.deadline(&console.within);
    let ours = |said: &Said<'_>| said.client == console.client && said.vmi == console.vmi;
    let said: Vec<Said<'_>> = ask.history.said().into_iter().filter(ours).collect();
    let since = ask.window.from.index;
    let mut heard = String::new();
    let mut closed = closed_already(&said, since);
    // Without an expectation the step is done when its text is sent, or its session open.
    let mut done = (console.expect.is_none()
        && !console.expect_closed
        && console.send.is_none()
        && is_open(&said, since))
    .then_some((ask.window.from.t, since));
    for said in said
        .iter()
        .filter(|said| said.index > since && said.t <= deadline)
    {
        match said.what {
            ConsoleWhat::Failed => {
                return Finding::refuted(format!(
                    "console session {} failed: {}",
                    console.client, said.text
                ));
            }
            ConsoleWhat::Received => heard.push_str(said.text),
            ConsoleWhat::Closed => closed = true,
            ConsoleWhat::Opened => closed = false,
            ConsoleWhat::Sent => {}
        }
        let heard_it = console
            .expect
            .as_ref()
            .is_none_or(|wanted| wanted.is_match(&heard));
        let closed_it = !console.expect_closed || closed;
        let acted =
            console.send.is_none() || console.expect.is_some() || said.what == ConsoleWhat::Sent;
        if done.is_none() && heard_it && closed_it && acted {
            done = Some((said.t, said.index));
        }
    }
    if done.is_none() && console.expect.is_none() && console.expect_closed && closed {
        done = Some((ask.window.from.t, since));
    }
    if let Some((at, index)) = done {
        return ask.held_at(at, index, &budget);
    }
    let vmi = ObjectRef {
        kind: "VirtualMachineInstance".to_owned(),
        name: Some(console.vmi.clone()),
        selector: None,
        namespace: None,
    };
    ask.not_yet(&vmi, &console.within, || {
        let wanted = console.expect.as_ref().map_or_else(
            || "the session was not closed from the other side".to_owned(),
            |wanted| format!("/{wanted}/ was not heard; heard {:?}", tail(&heard)),
        );
        about(
            ask.history,
            &vmi,
            ask.window,
            format!("console {}: {wanted}", console.client),
            None,
        )
    })
}

/// Whether the session in use when the step began had been closed by then.
fn closed_already(said: &[Said<'_>], since: usize) -> bool {
    let before = said.iter().take_while(|said| said.index <= since);
    before
        .filter(|said| matches!(said.what, ConsoleWhat::Opened | ConsoleWhat::Closed))
        .last()
        .is_some_and(|last| last.what == ConsoleWhat::Closed)
}

fn is_open(said: &[Said<'_>], since: usize) -> bool {
    let before = said.iter().take_while(|said| said.index <= since);
    before
        .filter(|said| matches!(said.what, ConsoleWhat::Opened | ConsoleWhat::Closed))
        .last()
        .is_some_and(|last| last.what == ConsoleWhat::Opened)
}

fn tail(text: &str) -> String {
    const LONGEST: usize = 300;
    let skip = text.chars().count().saturating_sub(LONGEST);
    text.chars().skip(skip).collect()
}

fn answered(ask: Ask<'_, '_>, span: &StepSpan<'_>, scenario: &Scenario, step: &Step) -> Finding {
    let answers = ask.history.answers(step.id.as_str());
    // Earlier answers were conflicts that the engine tried again; they stay in the journal, the last one counts.
    let Some(answer) = answers
        .last()
        .filter(|_| span.end.is_some() || ask.window.closed)
    else {
        return if span.end.is_some() || ask.window.closed {
            Finding::Broken {
                why: "no answer was recorded".to_owned(),
                blame: Blame::Harness,
            }
        } else {
            Finding::Open
        };
    };
    if answer.code == 0 {
        let why = format!(
            "no answer from the API server: {}",
            answer.error.unwrap_or("unknown transport error")
        );
        return Finding::Broken {
            why,
            blame: Blame::Environment,
        };
    }
    let held = Finding::Held {
        at: answer.t,
        index: answer.index,
        used: None,
    };
    match &step.expectation {
        Expectation::Accepted => judge_reply(answer, None, None, held),
        Expectation::Reply { code, body } => judge_reply(answer, *code, body.as_ref(), held),
        Expectation::Refused(wanted) => {
            if let Some(control) = refused_control(ask, scenario) {
                return Finding::unknown(format!(
                    "{control} was not accepted, so a refusal proves nothing"
                ));
            }
            let subresource = matches!(step.action, Action::Subresource(_));
            reply::compare(wanted, answer.code, answer.body, subresource).map_or(held, refute)
        }
    }
}

fn judge_reply(
    answer: &Answer<'_>,
    code: Option<u16>,
    body: Option<&conformance_scenario::Matcher>,
    held: Finding,
) -> Finding {
    let Some(explanation) = reply::compare_reply(code, body, answer.code, answer.body) else {
        return held;
    };
    let expected_another_code = code.is_some_and(|code| code >= 300);
    let blame = reply::blame(answer.code, answer.body);
    if blame == Blame::Product || expected_another_code || answer.code < 300 {
        refute(explanation)
    } else {
        Finding::Broken {
            why: explanation.summary,
            blame,
        }
    }
}

fn refute(explanation: Explanation) -> Finding {
    Finding::Refuted(Box::new(explanation))
}

/// The first control of the scenario that was not accepted.
fn refused_control(ask: Ask<'_, '_>, scenario: &Scenario) -> Option<String> {
    let controls = scenario
        .spec
        .steps
        .iter()
        .filter(|step| step.id.as_str().starts_with("control"));
    let refused = |step: &&Step| {
        ask.history
            .answers(step.id.as_str())
            .last()
            .is_some_and(|answer| !(200..300).contains(&answer.code))
    };
    controls
        .into_iter()
        .find(refused)
        .map(|step| step.id.to_string())
}
