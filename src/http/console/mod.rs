//! The operator's page, on the admin listener: what the service does, live, and the few things that an operator changes.
//!
//! In reading order: [`assets`] (the page itself, in the binary), [`guard`] (whom a browser may act for), [`live`] (one
//! snapshot a second for all viewers, and none when nobody looks), [`gather`] (makes it) from [`exposition`] (what the metrics
//! say), [`reading`] (that, in numbers), [`rates`] (what happened since the reading before) and [`loads`] (of each shard), into the shapes of
//! [`snapshot`]; [`settings`] (the configuration in force), [`recent`] (the end of a workshop's log), [`verify`] (the audit,
//! from here).
//!
//! What the public API has is asked of its own handlers, which are mounted below `/console/api`: the page is then of one
//! origin with what it asks, and an operator who looks around is on no namespace's bill.

mod assets;
mod exposition;
mod gather;
mod guard;
mod live;
mod loads;
mod rates;
mod reading;
mod recent;
mod settings;
mod snapshot;
mod verify;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::middleware::from_fn_with_state;
use axum::routing::{get, post};
use tokio::sync::{Semaphore, watch};

use super::{App, backup, bookings, changes, deleted, history, likes, rooms, workshops};
use crate::config::{Config, Namespaces};
use crate::data_dir::Manifest;

/// What the page needs that no other handler does; a cheap clone.
#[derive(Debug, Clone)]
pub struct Console(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    facts: snapshot::Instance,
    settings: Vec<settings::Setting>,
    namespaces: Namespaces,
    /// `mailbox.capacity`
    mailbox_capacity: usize,
    data_dir: PathBuf,
    /// `server.max_console_viewers`
    viewers: Arc<Semaphore>,
    max_viewers: usize,
    snapshots: watch::Sender<Option<Arc<str>>>,
    /// Whether the task that makes snapshots runs.
    making: Mutex<bool>,
    /// One audit at a time: it reads everything.
    auditing: Arc<Semaphore>,
}

impl Console {
    /// Of a service that listens at these addresses, public and admin. Nobody looks yet.
    #[must_use]
    pub fn new(
        config: &Config,
        manifest: &Manifest,
        since_ms: i64,
        listening: (SocketAddr, SocketAddr),
    ) -> Self {
        let max_viewers = config.server.max_console_viewers;
        Self(Arc::new(Inner {
            facts: snapshot::Instance::of(config, manifest, since_ms, listening),
            settings: settings::in_force(config, manifest),
            namespaces: config.namespaces.clone(),
            mailbox_capacity: config.mailbox.capacity,
            data_dir: config.storage.data_dir.clone(),
            viewers: Arc::new(Semaphore::new(max_viewers)),
            max_viewers,
            snapshots: watch::Sender::new(None),
            making: Mutex::new(false),
            auditing: Arc::new(Semaphore::new(1)),
        }))
    }
}

/// Everything of the page, and what else on the admin listener changes something.
pub(super) fn routes(app: &App) -> Router<App> {
    let guarded = Router::new()
        .route("/console/live", get(live::stream))
        .route("/console/snapshot", get(live::snapshot))
        .route("/console/settings", get(settings::show))
        .route("/backup", post(backup::take))
        .route("/verify", post(verify::run))
        .nest("/console/api", api(&app.console.0.namespaces))
        .layer(from_fn_with_state(app.clone(), guard::guard));
    Router::new()
        .route("/", get(assets::index))
        .route("/console/assets/{file}", get(assets::file))
        .merge(guarded)
}

/// The public handlers that the page asks.
fn api(namespaces: &Namespaces) -> Router<App> {
    let mut api = Router::new().route("/rooms/{room}", get(rooms::members::look));
    api = match namespaces.likes.is_deleted() {
        true => api.merge(deleted::routes("likes")).merge(deleted::routes("trending")),
        false => api
            .route("/likes/{item}", get(likes::total))
            .route("/likes/{item}/history", get(history::history))
            .route("/trending", get(history::trending)),
    };
    match namespaces.workshops.is_deleted() {
        true => api.merge(deleted::routes("workshops")),
        false => api
            .route("/workshops", get(workshops::list))
            .route(
                "/workshops/{workshop}",
                get(workshops::configuration).put(workshops::configure).delete(workshops::delete),
            )
            .route("/workshops/{workshop}/status", get(workshops::status))
            .route("/workshops/{workshop}/recent", get(recent::recent))
            .route("/workshops/{workshop}/reservations", get(bookings::list))
            .route("/workshops/{workshop}/reservations/{requestId}", get(bookings::show))
            .route(
                "/workshops/{workshop}/reservations/{requestId}/cancel",
                post(changes::cancel_as_operator),
            ),
    }
}
