//! Taking a backup. On the admin listener, for the scope `admin`.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use serde::{Deserialize, Serialize};

use super::App;
use super::auth::{Admin, Permit};
use super::body::Body;
use super::problem::Problem;
use crate::admin::backup::{Refused, Taken};
use crate::partition::Refusal;

#[derive(Debug, Default, Deserialize)]
struct Asked {
    /// A name in `backup.dir`, or the path of one.
    dir: Option<String>,
}

/// Durations are milliseconds.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct TakenAnswer {
    dir: String,
    /// The moment that it shows, ms since 1970.
    taken_at: i64,
    bytes: u64,
    duration_ms: u64,
    /// How long the partitions stood still.
    held_ms: u64,
}

/// Answers when the backup is whole, on the disk and audited.
pub(super) async fn take(
    _permit: Permit<Admin>,
    State(app): State<App>,
    body: Body,
) -> Result<(StatusCode, Json<TakenAnswer>), Problem> {
    let asked: Asked = if body.is_nothing() { Asked::default() } else { body.object(invalid)? };
    let taken = app.backups.take(asked.dir.as_deref()).await?;
    Ok((StatusCode::CREATED, Json(taken.into())))
}

fn invalid() -> Problem {
    Problem::bad_request("invalid_backup", "a backup is `{\"dir\": \"a-name\"}`, or nothing").of_field("dir")
}

impl From<Taken> for TakenAnswer {
    fn from(taken: Taken) -> Self {
        let ms = |duration: std::time::Duration| u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
        Self {
            dir: taken.path.display().to_string(),
            taken_at: taken.taken_at_ms,
            bytes: taken.bytes,
            duration_ms: ms(taken.took),
            held_ms: ms(taken.held),
        }
    }
}

impl From<Refused> for Problem {
    fn from(refused: Refused) -> Self {
        let detail = refused.to_string();
        match refused {
            Refused::Name => Self::bad_request("invalid_backup", detail).of_field("dir"),
            Refused::Outside(_) => {
                Self::new(StatusCode::FORBIDDEN, "outside_backup_dir", detail).of_field("dir")
            }
            Refused::Exists(_) => Self::conflict("backup_exists", detail).of_field("dir"),
            Refused::Running => Self::conflict("backup_running", detail),
            Refused::Short(_) => Self::new(StatusCode::INSUFFICIENT_STORAGE, "disk_full", detail),
            Refused::Stopping | Refused::NotHeld => {
                Self::new(StatusCode::SERVICE_UNAVAILABLE, "unavailable", detail)
            }
            Refused::Store(error) if error.is_disk_full() => Refusal::DiskFull.into(),
            Refused::Io(error) if error.kind() == std::io::ErrorKind::StorageFull => Refusal::DiskFull.into(),
            Refused::Unsound(_) => Self::new(StatusCode::INTERNAL_SERVER_ERROR, "backup_unsound", detail),
            // The cause is in the log.
            Refused::Store(_) | Refused::Audit(_) | Refused::Io(_) => {
                let detail = "the backup could not be written; the log says why";
                Self::new(StatusCode::INTERNAL_SERVER_ERROR, "backup_failed", detail)
            }
        }
    }
}
