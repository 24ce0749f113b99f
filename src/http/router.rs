//! Which handler answers which path, and what they all share.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::{MatchedPath, State};
use axum::http::{StatusCode, Uri, header};
use axum::response::IntoResponse;
use axum::routing::get;
use axum::{Extension, Router};
use metrics_exporter_prometheus::PrometheusHandle;
use tokio_util::sync::CancellationToken;
use tracing_appender::non_blocking::ErrorCounter;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::auth::user::KeysAlone;
use super::auth::{Keys, Permit, Read};
use super::console::Console;
use super::elsewhere::{self, Methods};
use super::observe::{ObserveLayer, Routes};
use super::origins::Origins;
use super::problem::Problem;
use super::{
    batch, bookings, changes, console, counters, deleted, events, health, history, likers, likes,
    live_totals, noop, openapi, path, people, reservations, rooms, sets, usage, web, workshops,
};
use crate::admin::backup::Backups;
use crate::config::{Config, Namespaces};
use crate::likes::rollup::past::Past;
use crate::likes::rollup::{Rollup, Summary};
use crate::likes::{Bulk, Counters, Shards};
use crate::partition::Clock;
use crate::people::Forgetter;
use crate::reservations::{Sets, Workshops};
use crate::rooms::Rooms;
use crate::telemetry::Telemetry;
use crate::usage::Usage;
use crate::usage::stored::Measured;

/// What every handler sees; a cheap clone.
#[derive(Debug, Clone)]
pub struct App(Arc<Shared>);

/// See [`App`].
pub struct Shared {
    /// The likes actors.
    pub shards: Shards,
    /// Counters without members.
    pub counters: Counters,
    /// Likes in bulk.
    pub bulk: Bulk,
    /// The task that deletes items.
    pub rollup: Rollup,
    /// Rolled-up totals.
    pub summary: Summary,
    /// What became of them.
    pub past: Past,
    /// The reservation actors.
    pub workshops: Workshops,
    /// Several of them at once.
    pub sets: Sets,
    /// The rooms.
    pub rooms: Rooms,
    /// The task that forgets people.
    pub forgetter: Forgetter,
    /// How the data is laid out: `likes.shards` and `storage.partitions`.
    pub layout: (u32, u32),
    /// The service's time.
    pub clock: Clock,
    /// Whether each partition serves.
    pub partitions: Vec<Box<dyn Fn() -> bool + Send + Sync>>,
    /// Cancelled when the service stops accepting.
    pub draining: CancellationToken,
    /// API keys, and what signs tokens.
    pub keys: Keys,
    /// Which sites' pages may call.
    pub origins: Origins,
    /// Bounds of what a request may hold.
    pub limits: Limits,
    /// What each namespace costs.
    pub usage: Usage,
    /// Bytes stored.
    pub stored: Measured,
    /// Copies of all of it.
    pub backups: Backups,
    /// The operator's page.
    pub console: Console,
    /// Metrics by route.
    pub routes: Routes,
    /// Where `/metrics` comes from.
    pub metrics: Option<PrometheusHandle>,
    /// Makes the spans of requests.
    pub telemetry: Telemetry,
    /// Counts log lines that were dropped.
    pub log_dropped: Option<ErrorCounter>,
    /// `faults.clock_control`
    #[cfg(debug_assertions)]
    pub clock_control: bool,
}

/// Bounds of what a request may hold; the settings of the same names say what they mean.
#[derive(Debug, Clone)]
#[expect(missing_docs, reason = "the settings of the same names are documented")]
pub struct Limits {
    pub max_body_bytes: usize,
    pub max_item_bytes: usize,
    pub max_user_bytes: usize,
    pub max_items_per_read: usize,
    /// `likes.max_event_streams`
    pub max_total_streams: usize,
    /// `likes.event_keepalive_ms`
    pub total_keepalive: Duration,
    pub max_history_buckets: usize,
    pub max_trending: u32,
    pub max_items_per_query: usize,
    pub max_line_bytes: usize,
    /// `bulk.window_lines`
    pub bulk_window: usize,
    /// `bulk.idle_timeout_ms`
    pub bulk_idle_timeout: Duration,
    /// `likes.max_page`
    pub max_likes_page: u32,
    /// The longest name that a person may have anywhere.
    pub max_person_bytes: usize,
    pub max_seats_per_request: u32,
    pub max_capacity: u32,
    pub max_hold_ms: u64,
    pub max_offer_ms: u64,
    pub max_lines_per_set: usize,
    pub max_waitlist: u32,
    pub max_holder_bytes: usize,
    pub max_page: u32,
    pub max_event_streams: usize,
    pub event_keepalive: Duration,
    pub max_room_bytes: usize,
    /// `rooms.max_user_bytes`
    pub max_member_bytes: usize,
    pub max_message_bytes: usize,
    pub max_meta_bytes: usize,
    pub request_timeout: Duration,
    pub retry_after_s: u32,
}

impl From<&Config> for Limits {
    fn from(config: &Config) -> Self {
        Self {
            max_body_bytes: config.server.max_body_bytes,
            max_item_bytes: config.likes.max_item_bytes,
            max_user_bytes: config.likes.max_user_bytes,
            max_items_per_read: config.likes.max_items_per_read,
            max_total_streams: config.likes.max_event_streams,
            total_keepalive: Duration::from_millis(config.likes.event_keepalive_ms),
            max_history_buckets: config.likes.max_history_buckets,
            max_trending: config.likes.max_trending,
            max_items_per_query: config.likes.max_items_per_query,
            max_line_bytes: config.bulk.max_line_bytes,
            bulk_window: config.bulk.window_lines,
            bulk_idle_timeout: Duration::from_millis(config.bulk.idle_timeout_ms),
            max_likes_page: config.likes.max_page,
            max_person_bytes: config
                .likes
                .max_user_bytes
                .max(config.reservations.max_holder_bytes)
                .max(config.rooms.max_user_bytes),
            max_seats_per_request: config.reservations.max_seats_per_request,
            max_capacity: config.reservations.max_capacity,
            max_hold_ms: config.reservations.max_hold_ms,
            max_offer_ms: config.reservations.max_offer_ms,
            max_lines_per_set: config.reservations.max_lines_per_set,
            max_waitlist: config.reservations.max_waitlist,
            max_holder_bytes: config.reservations.max_holder_bytes,
            max_page: config.reservations.max_page,
            max_event_streams: config.reservations.max_event_streams,
            event_keepalive: Duration::from_millis(config.reservations.event_keepalive_ms),
            max_room_bytes: config.rooms.max_room_bytes,
            max_member_bytes: config.rooms.max_user_bytes,
            max_message_bytes: config.rooms.max_message_bytes,
            max_meta_bytes: config.rooms.max_meta_bytes,
            request_timeout: Duration::from_millis(config.server.request_timeout_ms),
            retry_after_s: config.server.retry_after_s,
        }
    }
}

impl App {
    /// Shares it.
    #[must_use]
    pub fn new(shared: Shared) -> Self {
        Self(Arc::new(shared))
    }
}

impl Deref for App {
    type Target = Shared;

    fn deref(&self) -> &Shared {
        &self.0
    }
}

/// The public listener's routes, without those of what is declared deleted.
pub fn public(app: &App, config: &Config) -> Router {
    let namespaces = &config.namespaces;
    let (router, mut document) = documented(namespaces).split_for_parts();
    openapi::fit(&mut document, &app.limits, &app.keys);
    let allowed = elsewhere::methods(&document);
    let document = document.to_pretty_json().unwrap_or_default();
    let serve_document =
        move || async move { ([(header::CONTENT_TYPE, "application/json")], document.clone()) };
    let mut router = router.route("/openapi.json", get(serve_document));
    for (name, namespace) in [
        ("likes", &namespaces.likes),
        ("trending", &namespaces.likes),
        ("batch/likes", &namespaces.likes),
        ("counters", &namespaces.likes),
        ("workshops", &namespaces.workshops),
        ("reservations", &namespaces.workshops),
    ] {
        if namespace.is_deleted() {
            router = router.merge(deleted::routes(name));
        }
    }
    if namespaces.likes.is_deleted() {
        router = router.merge(deleted::likes_of_people());
    }
    if config.server.noop_routes {
        router = router.merge(noop::routes());
    }
    router = router.merge(web::routes(config.server.demo));
    router = with_wrong_methods(router, allowed).fallback(elsewhere::no_such_path);
    if let Some(cors) = app.origins.layer() {
        // Around what answers for wrong methods, for a preflight is one of those.
        router = router.layer(cors);
    }
    observed(router, app, app.telemetry.clone())
}

pub(super) fn documented(namespaces: &Namespaces) -> OpenApiRouter<App> {
    let mut router = OpenApiRouter::with_openapi(openapi::base())
        .routes(routes!(health::health))
        .routes(routes!(health::ready));
    if !namespaces.likes.is_deleted() {
        router = router.merge(of_likes());
    }
    if !namespaces.workshops.is_deleted() {
        router = router.merge(of_workshops());
    }
    router.merge(of_rooms()).routes(routes!(people::forget))
}

fn of_likes() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(likes::totals))
        .routes(routes!(likes::total, likes::post_like, likes::delete))
        .routes(routes!(likes::like, likes::unlike, likes::liked))
        .routes(routes!(live_totals::stream))
        .routes(routes!(live_totals::many))
        .routes(routes!(history::history))
        .routes(routes!(history::trending))
        .routes(routes!(batch::likes::likes))
        .routes(routes!(batch::query::query))
        .routes(routes!(counters::total, counters::add))
        .routes(routes!(likers::likers))
        .routes(routes!(people::likes))
}

fn of_workshops() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(workshops::list))
        .routes(routes!(workshops::configuration, workshops::configure, workshops::delete))
        .routes(routes!(workshops::status))
        .routes(routes!(events::stream))
        .routes(routes!(bookings::list, reservations::reserve))
        .routes(routes!(bookings::show))
        .routes(routes!(changes::confirm))
        .routes(routes!(changes::cancel))
        .routes(routes!(changes::extend))
        .routes(routes!(sets::reserve))
        .routes(routes!(sets::show))
        .routes(routes!(sets::confirm))
        .routes(routes!(sets::cancel))
        .routes(routes!(sets::extend))
}

fn of_rooms() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(rooms::members::look))
        .routes(routes!(rooms::members::join))
        .routes(routes!(rooms::members::leave))
        .routes(routes!(rooms::messages::send))
        .routes(routes!(rooms::socket::socket))
        .routes(routes!(rooms::events::events))
        .routes(routes!(rooms::members::seed_join))
        .routes(routes!(rooms::members::seed_leave))
        .routes(routes!(rooms::messages::seed_send))
}

/// The admin listener's routes.
pub fn admin(app: &App) -> Router {
    let router = Router::new()
        .route("/health", get(health::health))
        .route("/ready", get(health::ready))
        .route("/metrics", get(metrics))
        .route("/usage", get(usage::usage))
        .merge(console::routes(app));
    #[cfg(debug_assertions)]
    let router = match app.clock_control {
        true => router.route("/faults/clock", axum::routing::post(advance_clock)),
        false => router,
    };
    // Whoever scrapes and looks is not traced.
    let router = with_wrong_methods(router, Methods::new()).fallback(async || Problem::not_found());
    observed(router, app, Telemetry::off()).layer(Extension(KeysAlone))
}

/// What answers where a path has handlers, and none for the method.
fn with_wrong_methods(router: Router<App>, allowed: Methods) -> Router<App> {
    let allowed = Arc::new(allowed);
    router.method_not_allowed_fallback(move |matched: Option<MatchedPath>, uri: Uri| async move {
        method_not_allowed(&uri, matched.and_then(|path| allowed.get(path.as_str()).cloned()))
    })
}

fn observed(router: Router<App>, app: &App, telemetry: Telemetry) -> Router {
    router.layer(ObserveLayer { app: app.clone(), telemetry }).with_state(app.clone())
}

/// The seed looks at a workshop's name before it looks at the method.
fn method_not_allowed(uri: &Uri, allowed: Option<String>) -> Problem {
    // The router takes an empty segment for a name.
    if uri.path().contains("//") {
        return Problem::not_found();
    }
    if uri.path().starts_with("/workshops/")
        && let Err(problem) = path::workshop(uri)
    {
        return problem;
    }
    let detail = allowed
        .map_or_else(|| "see the Allow header".to_owned(), |methods| format!("allowed here: {methods}"));
    Problem::new(StatusCode::METHOD_NOT_ALLOWED, "method_not_allowed", detail)
}

async fn metrics(_permit: Permit<Read>, State(app): State<App>) -> impl IntoResponse {
    let age_ms = (app.clock.now_ms() - app.summary.as_of_ms()).max(0);
    let dropped = app.log_dropped.as_ref().map_or(0, ErrorCounter::dropped_lines);
    crate::metrics::before_scrape(age_ms, dropped as u64);
    app.rooms.observe();
    crate::metrics::usage(&app.usage, app.stored.latest());
    let text = app.metrics.as_ref().map(PrometheusHandle::render).unwrap_or_default();
    ([(header::CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")], text)
}

/// Time goes on by `?ms=`, for tests that do not want to wait (`faults.clock_control`).
#[cfg(debug_assertions)]
async fn advance_clock(
    _permit: Permit<super::auth::Admin>,
    State(app): State<App>,
    uri: Uri,
) -> Result<&'static str, Problem> {
    let query = super::query::Query::parse(uri.query())?;
    let ms = query.one("ms")?.and_then(|ms| ms.parse().ok());
    app.clock.advance(ms.ok_or_else(|| Problem::bad_request("invalid_query", "`ms` is a number"))?);
    app.rooms.look_at_the_clock();
    Ok("it is later now")
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shared").field("limits", &self.limits).finish_non_exhaustive()
    }
}
