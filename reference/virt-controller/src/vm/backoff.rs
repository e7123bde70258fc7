//! Pauses between starts that fail: a VMI that ended without ever having run counts once.

use std::{
    hash::{DefaultHasher, Hash as _, Hasher as _},
    time::Duration,
};

use k8s_openapi::{
    apimachinery::pkg::apis::meta::v1::Time,
    jiff::{SignedDuration, Timestamp},
};
use kube::ResourceExt as _;
use kubevirt_api::v1::{RunStrategy, VirtualMachineInstance, VirtualMachineStartFailure};

use super::observe::{has_run, phase};

const INTERVAL: u64 = 10;
const LONGEST: u64 = 300;

/// The record of failures after what is seen now; none when there is nothing to hold against the VM.
pub(super) fn record(
    old: Option<&VirtualMachineStartFailure>,
    strategy: &RunStrategy,
    vmi: Option<&VirtualMachineInstance>,
    now: &Time,
) -> Option<VirtualMachineStartFailure> {
    if !is_kept(strategy) {
        return None;
    }
    let Some(vmi) = vmi else { return old.cloned() };
    if has_run(vmi) {
        return None;
    }
    let uid = vmi.uid();
    if !phase(vmi).is_final() || old.is_some_and(|old| old.last_failed_vmi_uid == uid) {
        return old.cloned();
    }
    let count = 1 + old.and_then(|o| o.consecutive_fail_count).unwrap_or(0);
    let delay = delay(count, spread(uid.as_deref().unwrap_or_default()));
    let retry = now.0.saturating_add(SignedDuration::from_secs(delay));
    Some(VirtualMachineStartFailure {
        consecutive_fail_count: Some(count),
        last_failed_vmi_uid: uid,
        retry_after_timestamp: Some(Time(retry.unwrap_or(Timestamp::MAX))),
    })
}

/// Whether a VM of that strategy remembers failed starts.
pub(super) fn is_kept(strategy: &RunStrategy) -> bool {
    matches!(
        strategy,
        RunStrategy::Always | RunStrategy::RerunOnFailure | RunStrategy::Once
    )
}

/// Whether at least one start failed.
pub(super) fn has_failed(record: Option<&VirtualMachineStartFailure>) -> bool {
    record
        .and_then(|r| r.consecutive_fail_count)
        .is_some_and(|count| count > 0)
}

/// How long the next start has to wait.
pub(super) fn wait(record: Option<&VirtualMachineStartFailure>, now: &Time) -> Option<Duration> {
    let until = record?.retry_after_timestamp.as_ref()?.0;
    let left = until.duration_since(now.0);
    left.is_positive().then(|| left.unsigned_abs())
}

/// Seconds: 10 n², plus up to half of it, at most 300.
fn delay(count: i64, spread: f64) -> i64 {
    let base = INTERVAL
        .saturating_mul(count.unsigned_abs().saturating_pow(2))
        .min(LONGEST);
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        clippy::cast_precision_loss,
        reason = "base is at most 300 and spread lies in 0..1"
    )]
    let extra = (base as f64 / 2.0 * spread) as u64;
    i64::try_from((base + extra).min(LONGEST)).unwrap_or(i64::MAX)
}

/// A number in 0..1 that differs between VMIs: many VMs that fail together do not return together.
fn spread(uid: &str) -> f64 {
    let mut hasher = DefaultHasher::new();
    uid.hash(&mut hasher);
    let [.., high] = hasher.finish().to_le_bytes();
    f64::from(high) / 256.0
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::json;

    use super::*;

    fn now() -> Time {
        Time("2026-12-01T00:00:00Z".parse().unwrap())
    }

    fn vmi(uid: &str, phases: &[&str]) -> VirtualMachineInstance {
        let history: Vec<_> = phases
            .iter()
            .map(|p| json!({"phase": p, "phaseTransitionTimestamp": "2026-12-01T00:00:00Z"}))
            .collect();
        serde_json::from_value(json!({
            "apiVersion": "kubevirt.io/v1", "kind": "VirtualMachineInstance",
            "metadata": {"name": "a", "uid": uid}, "spec": {"domain": {}},
            "status": {"phase": phases.last(), "phaseTransitionTimestamps": history}
        }))
        .unwrap()
    }

    fn failed(count: i64, uid: &str) -> VirtualMachineStartFailure {
        VirtualMachineStartFailure {
            consecutive_fail_count: Some(count),
            last_failed_vmi_uid: Some(uid.to_owned()),
            retry_after_timestamp: Some(now()),
        }
    }

    #[rstest]
    #[case::first(1, 10..=15)]
    #[case::second(2, 40..=60)]
    #[case::third(3, 90..=135)]
    #[case::fourth(4, 160..=240)]
    #[case::fifth(5, 250..=300)]
    #[case::sixth(6, 300..=300)]
    #[case::many(i64::MAX, 300..=300)]
    fn delays(#[case] count: i64, #[case] want: std::ops::RangeInclusive<i64>) {
        for spread in [0.0, 0.3, 0.996] {
            assert!(want.contains(&delay(count, spread)), "{spread}");
        }
    }

    #[rstest]
    #[case::first_failure(None, Some(vmi("one", &["Pending", "Failed"])), Some(1))]
    #[case::next_failure(Some(failed(1, "zero")), Some(vmi("one", &["Pending", "Failed"])), Some(2))]
    #[case::counted_once(Some(failed(1, "one")), Some(vmi("one", &["Pending", "Failed"])), Some(1))]
    #[case::kept_while_it_starts(Some(failed(3, "zero")), Some(vmi("one", &["Pending"])), Some(3))]
    #[case::kept_between(Some(failed(3, "zero")), None, Some(3))]
    #[case::cleared_by_running(Some(failed(3, "zero")), Some(vmi("one", &["Pending", "Running"])), None)]
    #[case::crash_after_running(None, Some(vmi("one", &["Running", "Failed"])), None)]
    fn counts(
        #[case] old: Option<VirtualMachineStartFailure>,
        #[case] vmi: Option<VirtualMachineInstance>,
        #[case] want: Option<i64>,
    ) {
        let got = record(old.as_ref(), &RunStrategy::Always, vmi.as_ref(), &now());
        assert_eq!(got.and_then(|r| r.consecutive_fail_count), want);
    }

    #[test]
    fn manual_remembers_nothing() {
        let old = failed(2, "zero");
        assert_eq!(record(Some(&old), &RunStrategy::Manual, None, &now()), None);
    }

    #[test]
    fn waits_until_the_time_and_not_longer() {
        let mut record = failed(1, "one");
        assert_eq!(wait(Some(&record), &now()), None);
        record.retry_after_timestamp = Some(Time("2026-12-01T00:00:12Z".parse().unwrap()));
        assert_eq!(wait(Some(&record), &now()), Some(Duration::from_secs(12)));
    }
}
