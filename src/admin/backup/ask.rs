//! `headcount backup`: asks a running service for a backup, through its admin API.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use http_body_util::Full;
use hyper::{Request, StatusCode};
use serde_json::{Value, json};

use crate::admin::call::{self, call};
use crate::config::address;

/// `headcount backup`'s arguments.
#[derive(Debug, clap::Args)]
pub struct BackupOptions {
    /// The backup to write: a name in the service's backup.dir, or a path there
    #[arg(value_name = "NAME")]
    pub dir: PathBuf,
    /// The admin API of the service [default: the settings' server.admin_listen]
    #[arg(long, value_name = "ADDR", value_parser = address)]
    pub admin: Option<SocketAddr>,
    /// The settings file [default: config/headcount.toml if it exists]
    #[arg(long)]
    pub config: Option<PathBuf>,
}

/// Why there is none.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Nobody is there.
    #[error("{0}. Where none runs, copy the data directory")]
    NoService(call::Error),
    /// The connection.
    #[error(transparent)]
    Call(call::Error),
    /// The request.
    #[error("{0}")]
    Request(#[from] axum::http::Error),
    /// A path that is none.
    #[error("{0}")]
    Path(#[from] std::io::Error),
    /// A path that is no text.
    #[error("the name of a backup is text")]
    NoText,
    /// The service's words.
    #[error("{0}")]
    Refused(String),
}

/// Asks, and waits until it is done; what the service said.
///
/// # Errors
/// See [`Error`].
pub async fn ask(admin: SocketAddr, key: Option<&str>, dir: &Path) -> Result<Value, Error> {
    // A bare name is one of the service's; a path is one of this shell's.
    let dir = if dir.components().count() == 1 && dir.is_relative() {
        dir.to_owned()
    } else {
        std::path::absolute(dir)?
    };
    let body = json!({"dir": dir.to_str().ok_or(Error::NoText)?}).to_string();
    let request = Request::post("/backup");
    // Without keys, the admin listener changes nothing for a request that a foreign page could make.
    let mut request = request.header("content-type", "application/json");
    if let Some(key) = key {
        request = request.header("authorization", format!("Bearer {key}"));
    }
    let answer = call(admin, request.body(Full::from(body))?).await.map_err(|error| match error {
        call::Error::NoService(..) => Error::NoService(error),
        call::Error::Http(_) => Error::Call(error),
    })?;
    if answer.status.is_success() {
        return Ok(answer.body);
    }
    let hint = match answer.status {
        StatusCode::NOT_FOUND => {
            format!(". {admin} is no admin listener: --admin takes the service's server.admin_listen")
        }
        StatusCode::UNAUTHORIZED => ". Set HEADCOUNT_API_KEY to a key with the scope admin".to_owned(),
        _ => String::new(),
    };
    Err(Error::Refused(format!("{}: {}{hint}", answer.status, answer.detail())))
}
