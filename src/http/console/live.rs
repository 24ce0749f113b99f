//! The snapshots as they come: made by one task for all viewers, once a second, while there are any.
//!
//! A viewer that is slow finds the newest one when it comes back: each is whole, so nothing is missed by skipping, and
//! nothing queues up.

use std::convert::Infallible;
use std::sync::{Arc, MutexGuard, PoisonError};
use std::time::Duration;

use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::IntoResponse;
use axum::response::sse::{Event, KeepAlive, Sse};
use futures_util::stream::{self, Stream};
use tokio::sync::{OwnedSemaphorePermit, watch};
use tokio::time::MissedTickBehavior;

use super::Console;
use super::gather::Gatherer;
use crate::http::App;
use crate::http::auth::{Permit, Read};
use crate::http::problem::Problem;
use crate::log::tail;

/// Between two snapshots: as often as totals are rolled up, as shipped.
const EVERY: Duration = Duration::from_secs(1);
/// After so long without a snapshot (a partition does not answer), a stream shows that it lives.
const KEEP_ALIVE: Duration = Duration::from_secs(5);

/// Somebody who looks; given up with it.
struct Viewer {
    snapshots: watch::Receiver<Option<Arc<str>>>,
    _place: OwnedSemaphorePermit,
}

impl Console {
    /// Begins to look. The first of all viewers has snapshots made.
    fn look(&self, app: &App) -> Result<Viewer, Problem> {
        let place = Arc::clone(&self.0.viewers).try_acquire_owned().map_err(|_| {
            let detail = "too many look at the operator's page (server.max_console_viewers)";
            Problem::new(StatusCode::SERVICE_UNAVAILABLE, "overloaded", detail)
        })?;
        // Before the task is looked for: it ends only where it finds no receiver, under the lock.
        let snapshots = self.0.snapshots.subscribe();
        let mut making = self.making();
        if !std::mem::replace(&mut *making, true) {
            watch(app, true);
            tokio::spawn(make(app.clone()));
        }
        drop(making);
        Ok(Viewer { snapshots, _place: place })
    }

    /// How many look.
    pub(super) fn viewers(&self) -> usize {
        self.0.max_viewers.saturating_sub(self.0.viewers.available_permits())
    }

    /// Whether nobody does. Then nothing is made any more.
    fn ends(&self, app: &App) -> bool {
        let mut making = self.making();
        if self.0.snapshots.receiver_count() > 0 {
            return false;
        }
        self.ended(app, &mut making);
        true
    }

    fn ended(&self, app: &App, making: &mut MutexGuard<'_, bool>) {
        **making = false;
        watch(app, false);
        self.0.snapshots.send_replace(None);
    }

    fn making(&self) -> MutexGuard<'_, bool> {
        self.0.making.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Should making one panic, the next viewer begins anew.
struct Making(App);

impl Drop for Making {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let console = &self.0.console;
            console.ended(&self.0, &mut console.making());
        }
    }
}

/// What is kept and measured for viewers alone: begins, or ends.
fn watch(app: &App, watched: bool) {
    tail::watch(watched);
    app.shards.watch(watched);
}

async fn make(app: App) {
    let _making = Making(app.clone());
    let mut gatherer = Gatherer::default();
    let mut every = tokio::time::interval(EVERY);
    every.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            _ = every.tick() => {}
            () = app.draining.cancelled() => return,
        }
        if app.console.ends(&app) {
            return;
        }
        let snapshot = gatherer.gather(&app).await;
        match serde_json::to_string(&snapshot) {
            Ok(json) => drop(app.console.0.snapshots.send_replace(Some(json.into()))),
            Err(error) => tracing::error!(%error, "the operator's page cannot be told what is"),
        }
    }
}

/// A snapshot at once, and then each as it is made.
pub(super) async fn stream(
    _permit: Permit<Read>,
    State(app): State<App>,
) -> Result<Sse<impl Stream<Item = Result<Event, Infallible>>>, Problem> {
    let mut viewer = app.console.look(&app)?;
    // The present one counts as new.
    viewer.snapshots.mark_changed();
    let draining = app.draining.clone();
    let stream = stream::unfold((viewer, draining), async |(mut viewer, draining)| {
        loop {
            tokio::select! {
                changed = viewer.snapshots.changed() => changed.ok()?,
                () = draining.cancelled() => return None,
            }
            let snapshot = viewer.snapshots.borrow_and_update().clone();
            if let Some(snapshot) = snapshot {
                let event = Event::default().event("snapshot").data(&*snapshot);
                return Some((Ok(event), (viewer, draining)));
            }
        }
    });
    Ok(Sse::new(stream).keep_alive(KeepAlive::new().interval(KEEP_ALIVE)))
}

/// One of them. Whoever asks alone gets the first one, in which nothing has a rate yet.
pub(super) async fn snapshot(
    _permit: Permit<Read>,
    State(app): State<App>,
) -> Result<impl IntoResponse, Problem> {
    let mut viewer = app.console.look(&app)?;
    let stopped = || Problem::new(StatusCode::SERVICE_UNAVAILABLE, "unavailable", "the service is stopping");
    let made = tokio::time::timeout(app.limits.request_timeout, viewer.snapshots.wait_for(Option::is_some));
    let snapshot = made.await.map_err(|_| stopped())?.map_err(|_| stopped())?.clone().unwrap_or_default();
    Ok(([(header::CONTENT_TYPE, "application/json")], snapshot.to_string()))
}
