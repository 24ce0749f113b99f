//! The cron schedule that knocks on the roll-up's door.
//!
//! The scheduler starts a job whether or not the last one is done, and does not wait for jobs when it
//! stops; so the job does nothing but knock.

use tokio_cron_scheduler::{Job, JobScheduler, JobSchedulerError};

use super::Rollup;

/// A running schedule.
pub struct Schedule(JobScheduler);

/// Whether a text is a schedule: cron with seconds, as `* * * * * *` for every second.
///
/// # Errors
/// The parser's words.
pub fn check(schedule: &str) -> Result<(), String> {
    Job::new(schedule, |_, _| {}).map(drop).map_err(|error| error.to_string())
}

/// Starts knocking.
///
/// # Errors
/// The scheduler's, also for a text that [`check`] refuses.
pub async fn start(schedule: &str, rollup: Rollup) -> Result<Schedule, JobSchedulerError> {
    let scheduler = JobScheduler::new().await?;
    scheduler.add(Job::new(schedule, move |_, _| rollup.knock())?).await?;
    scheduler.start().await?;
    Ok(Schedule(scheduler))
}

impl Schedule {
    /// Knocks no more.
    pub async fn stop(mut self) {
        if let Err(error) = self.0.shutdown().await {
            tracing::warn!(%error, "the scheduler did not stop cleanly");
        }
    }
}

impl std::fmt::Debug for Schedule {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Schedule")
    }
}
