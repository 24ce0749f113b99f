//! The OpenAPI document, generated from the handlers.

use utoipa::{IntoResponses, Modify, OpenApi};

use super::problem::Problem;

/// What every route may answer before it decides.
#[derive(IntoResponses)]
#[expect(dead_code, reason = "documentation: only its shape is used")]
pub(super) enum Rejections {
    /// A name, a field or the query is not what it must be; `error` says which.
    #[response(status = 400, content_type = "application/problem+json")]
    BadRequest(Problem),
    /// No key, or an unknown one.
    #[response(status = 401, content_type = "application/problem+json")]
    Unauthorized(Problem),
    /// The key lacks the scope.
    #[response(status = 403, content_type = "application/problem+json")]
    Forbidden(Problem),
    /// No such path.
    #[response(status = 404, content_type = "application/problem+json")]
    NotFound(Problem),
}

/// What a route with a body may answer while reading it.
#[derive(IntoResponses)]
#[expect(dead_code, reason = "documentation: only its shape is used")]
pub(super) enum BodyRejections {
    /// The body did not arrive in time.
    #[response(status = 408, content_type = "application/problem+json")]
    RequestTimeout(Problem),
    /// The body is larger than `server.max_body_bytes`.
    #[response(status = 413, content_type = "application/problem+json")]
    BodyTooLarge(Problem),
}

/// What a partition may say instead of an outcome.
#[derive(IntoResponses)]
#[expect(dead_code, reason = "documentation: only its shape is used")]
pub(super) enum Refusals {
    /// `overloaded` and `unavailable`: surely not done. `outcome_unknown`: perhaps done, repeat with the same id.
    #[response(status = 503, content_type = "application/problem+json")]
    Unavailable(Problem),
    /// The disk is full; surely not done.
    #[response(status = 507, content_type = "application/problem+json")]
    DiskFull(Problem),
}

#[derive(OpenApi)]
#[openapi(
    info(
        title = "headcount",
        description = "Counts people when they all arrive at once: likes and reservations.",
        license(name = "Apache-2.0", identifier = "Apache-2.0")
    ),
    components(schemas(Problem)),
    security((), ("key" = [])),
    modifiers(&BearerKey)
)]
pub(super) struct Document;

struct BearerKey;

impl Modify for BearerKey {
    fn modify(&self, document: &mut utoipa::openapi::OpenApi) {
        use utoipa::openapi::security::{HttpAuthScheme, HttpBuilder, SecurityScheme};
        let bearer = HttpBuilder::new().scheme(HttpAuthScheme::Bearer).build();
        let components = document.components.get_or_insert_default();
        components.add_security_scheme("key", SecurityScheme::Http(bearer));
    }
}
