//! JUnit for build servers: a test case per scenario, its checks as properties. What was skipped is in it too.

use std::time::Duration;

use conformance_judge::{CheckStatus, Status, Verdict};
use quick_junit::{NonSuccessKind, Report, SerializeError, TestCase, TestCaseStatus, TestSuite};

use crate::{report::ConformanceReport, table};

/// The XML text.
pub fn junit(report: &ConformanceReport) -> Result<String, SerializeError> {
    let mut document = Report::new("virtmark");
    let mut suites: Vec<TestSuite> = Vec::new();
    for verdict in &report.results {
        let feature = verdict.feature.as_str();
        let index = suites
            .iter()
            .position(|suite| suite.name.as_str() == feature)
            .unwrap_or_else(|| {
                suites.push(TestSuite::new(feature));
                suites.len() - 1
            });
        if let Some(suite) = suites.get_mut(index) {
            suite.add_test_case(case(verdict));
        }
    }
    document.add_test_suites(suites);
    document.to_string()
}

fn case(verdict: &Verdict) -> TestCase {
    let mut case = TestCase::new(format!("{} {}", verdict.id, verdict.title), status(verdict));
    case.set_classname(verdict.feature.as_str());
    case.set_time(Duration::from_millis(verdict.duration_ms));
    case.set_assertions(verdict.checks.len());
    for check in &verdict.checks {
        case.add_property((check.id.as_str(), check.status.to_string().as_str()));
    }
    for mark in &verdict.marks {
        case.add_property(("mark", mark.to_string().as_str()));
    }
    case
}

fn status(verdict: &Verdict) -> TestCaseStatus {
    let mut status = match verdict.status {
        Status::Pass => return TestCaseStatus::success(),
        Status::Fail | Status::Blocked | Status::UnexpectedPass => {
            TestCaseStatus::non_success(NonSuccessKind::Failure)
        }
        Status::Inconclusive | Status::Error => TestCaseStatus::non_success(NonSuccessKind::Error),
        Status::Skipped | Status::NotApplicable | Status::ExpectedFail => TestCaseStatus::skipped(),
    };
    let failed = verdict
        .checks
        .iter()
        .find(|check| check.status == CheckStatus::Fail);
    let kind = match (verdict.status, failed) {
        (Status::Fail, Some(check)) => check.id.clone(),
        (other, _) => other.to_string(),
    };
    status.set_type(kind);
    if let Some(reason) = &verdict.reason {
        // Readers show `message` in one line; the rest goes into the description.
        status.set_message(reason.lines().next().unwrap_or_default());
        status.set_description(table::failure(verdict));
    }
    status
}
