//! Watches against a server that behaves badly.

use std::time::Duration;

use conformance_scenario::kinds;
use rstest::rstest;
use tokio::sync::mpsc;

use super::*;
use crate::fake::{Answer, server};

const LIST: &str = r#"{"metadata":{"resourceVersion":"10"},"items":[
    {"metadata":{"name":"a","uid":"1","resourceVersion":"4"}}]}"#;
const LATER: &str = r#"{"metadata":{"resourceVersion":"20"},"items":[
    {"metadata":{"name":"a","uid":"1","resourceVersion":"15"}}]}"#;
const CHANGE: &str = "{\"type\":\"MODIFIED\",\"object\":{\"metadata\":{\"name\":\"a\",\"uid\":\"1\",\"resourceVersion\":\"11\"}}}\n";
const GONE: &str = "{\"type\":\"ERROR\",\"object\":{\"code\":410,\"message\":\"too old\"}}\n";

fn scope() -> Scope {
    Scope {
        kind: kinds::find("ConfigMap").unwrap(),
        namespace: "ns".into(),
        selector: None,
        field: None,
    }
}

/// What a watch tells, in short, until so many signals have come; then what it says when it is told to stop.
async fn told(wire: Wire, count: usize) -> Vec<String> {
    let (out, mut signals) = mpsc::channel(16);
    let stop = CancellationToken::new();
    let watch = tokio::spawn(follow(wire, scope(), Clock::start(), out, stop.clone()));
    let mut told = Vec::new();
    let next = async |signals: &mut mpsc::Receiver<_>| {
        tokio::time::timeout(Duration::from_secs(10), signals.recv())
            .await
            .unwrap()
    };
    while told.len() < count {
        let (_, signal) = next(&mut signals).await.unwrap();
        told.push(short(signal));
    }
    stop.cancel();
    while let Some((_, signal)) = next(&mut signals).await {
        told.push(format!("at last {}", short(signal)));
    }
    watch.await.unwrap();
    told
}

fn short(signal: Signal) -> String {
    match signal {
        Signal::Opened { resource_version } => format!("opened {resource_version}"),
        Signal::Seen { change, object } => {
            format!(
                "{change:?} {}",
                resource_version(&object).unwrap_or_default()
            )
        }
        Signal::Gap { from, to, .. } => {
            assert!(from <= to);
            "gap".to_owned()
        }
        Signal::Refused { code, .. } => format!("refused {code}"),
    }
}

#[tokio::test]
async fn an_unbroken_watch_tells_the_list_and_then_changes() {
    let (wire, requests) = server(|number, _| match number {
        1 => Answer::Json(200, LIST),
        _ => Answer::Hanging(CHANGE),
    })
    .await;
    assert_eq!(told(wire, 3).await, ["Added 4", "opened 10", "Modified 11"]);
    let requests = requests.lock().unwrap();
    assert!(
        requests[1].contains("resourceVersion=10")
            && requests[1].contains("allowWatchBookmarks=true")
    );
}

#[rstest]
#[case::torn(Answer::Torn(CHANGE), "Modified 11")]
#[case::forgotten(Answer::Hanging(GONE), "")]
#[case::refused(Answer::Json(500, "{}"), "")]
#[tokio::test]
async fn lost_continuity_is_told_as_a_gap(#[case] second: Answer, #[case] before: &str) {
    let second = std::sync::Mutex::new(Some(second));
    let (wire, _) = server(move |number, _| match number {
        1 => Answer::Json(200, LIST),
        2 => second.lock().unwrap().take().unwrap(),
        3 => Answer::Json(200, LATER),
        _ => Answer::Hanging(""),
    })
    .await;
    let mut wanted = vec!["Added 4", "opened 10"];
    wanted.extend((!before.is_empty()).then_some(before));
    wanted.extend(["Modified 15", "gap"]);
    assert_eq!(told(wire, wanted.len()).await, wanted);
}

#[tokio::test]
async fn a_watch_that_is_stopped_while_it_is_blind_says_so() {
    let (wire, _) = server(|number, _| match number {
        1 => Answer::Json(200, LIST),
        2 => Answer::Torn(CHANGE),
        _ => Answer::Json(503, "{}"),
    })
    .await;
    let told = told(wire, 3).await;
    assert_eq!(told, ["Added 4", "opened 10", "Modified 11", "at last gap"]);
}

#[tokio::test]
async fn a_refused_watch_ends() {
    let (wire, _) = server(|_, _| Answer::Json(403, r#"{"message":"no"}"#)).await;
    let (out, mut signals) = mpsc::channel(1);
    let watch = tokio::spawn(follow(
        wire,
        scope(),
        Clock::start(),
        out,
        CancellationToken::new(),
    ));
    assert_eq!(
        signals
            .recv()
            .await
            .map(|(_, signal)| short(signal))
            .as_deref(),
        Some("refused 403")
    );
    drop(signals);
    tokio::time::timeout(Duration::from_secs(5), watch)
        .await
        .unwrap()
        .unwrap();
}
