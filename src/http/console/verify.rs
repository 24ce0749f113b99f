//! `headcount verify` beside the running service, asked for from the page or by `POST /verify`.

use std::time::{Duration, Instant};

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use serde::Serialize;
use tokio::sync::oneshot;

use crate::admin::verify::{self, Report};
use crate::http::App;
use crate::http::auth::{Admin, Permit};
use crate::http::problem::Problem;

/// Findings that are told; how many there are is always told.
const TOLD: usize = 100;

/// What was looked at, and what is wrong.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct VerifyAnswer {
    passes: bool,
    duration_ms: u64,
    items: u64,
    memberships: u64,
    counters: u64,
    /// Not carried into the totals yet.
    pending: u64,
    workshops: u64,
    attempts: u64,
    sets: u64,
    rooms: u64,
    messages: u64,
    /// How much is wrong.
    wrong: usize,
    /// The first hundred of it.
    findings: Vec<FindingAnswer>,
}

#[derive(Debug, Serialize)]
struct FindingAnswer {
    /// Absent for the summary.
    #[serde(skip_serializing_if = "Option::is_none")]
    partition: Option<u32>,
    what: String,
    why: String,
}

/// Answers when the audit has ended, which takes as long as reading everything does. It goes on if nobody waits for it any
/// more; until then there is no second one.
pub(super) async fn run(
    _permit: Permit<Admin>,
    State(app): State<App>,
) -> Result<Json<VerifyAnswer>, Problem> {
    let turn = app.console.0.auditing.clone().try_acquire_owned();
    let turn =
        turn.map_err(|_| Problem::conflict("verify_running", "an audit is running; wait for its end"))?;
    let data_dir = app.console.0.data_dir.clone();
    let (report, reported) = oneshot::channel();
    // A thread of its own and none of the runtime's: that would keep the process from ending until the audit has.
    let audit = move || {
        let started = Instant::now();
        let audited = verify::verify_patiently(&data_dir);
        drop(turn);
        let _nobody_waits = report.send((audited, started.elapsed()));
    };
    let failed = |detail: String| Problem::new(StatusCode::INTERNAL_SERVER_ERROR, "verify_failed", detail);
    let thread = std::thread::Builder::new().name("verify".to_owned()).spawn(audit);
    thread.map_err(|error| failed(error.to_string()))?;
    let (audited, took) = reported.await.map_err(|_| failed("the audit ended early".to_owned()))?;
    let report = audited.map_err(|error| failed(format!("it could not look: {error}")))?;
    tracing::info!(wrong = report.findings.len(), seconds = took.as_secs_f64(), "the data was audited");
    Ok(Json(VerifyAnswer::of(report, took)))
}

impl VerifyAnswer {
    fn of(report: Report, took: Duration) -> Self {
        let wrong = report.findings.len();
        let findings = report.findings.into_iter().take(TOLD);
        Self {
            passes: wrong == 0,
            duration_ms: u64::try_from(took.as_millis()).unwrap_or(u64::MAX),
            items: report.items,
            memberships: report.memberships,
            counters: report.counters,
            pending: report.pending,
            workshops: report.workshops,
            attempts: report.attempts,
            sets: report.sets,
            rooms: report.rooms,
            messages: report.messages,
            wrong,
            findings: findings
                .map(|finding| FindingAnswer {
                    partition: finding.partition,
                    what: finding.what,
                    why: finding.why,
                })
                .collect(),
        }
    }
}
