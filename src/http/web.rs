//! What a browser loads from here: the like button, and a page that shows it. For everybody: nothing in it is secret.

use std::io::Write;
use std::sync::Arc;

use axum::Router;
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use sha2::{Digest, Sha256};

use super::App;

const WIDGET: &str = include_str!("web/widget.js");
const DEMO: &str = include_str!("web/demo.html");

/// An hour without a question, and a day in which an old one does while the new one is fetched.
const CACHE: &str = "public, max-age=3600, stale-while-revalidate=86400";
/// The demo's page loads and asks this service alone.
const DEMO_MAY: &str = "default-src 'none'; script-src 'self'; connect-src 'self'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'";

/// The script as it is written, and as it travels to whoever takes it compressed: in five kilobytes instead of thirteen.
struct Widget {
    plain: Variant,
    /// Absent where it could not be compressed.
    gzip: Option<Variant>,
}

struct Variant {
    etag: String,
    body: Bytes,
}

/// `GET /widget.js`, and `GET /demo` with `server.demo`.
pub(super) fn routes(demo: bool) -> Router<App> {
    let widget = Arc::new(Widget::new());
    let router = Router::new()
        .route("/widget.js", get(move |headers: HeaderMap| async move { widget.answer(&headers) }));
    match demo {
        true => router.route("/demo", get(page)),
        false => router,
    }
}

impl Widget {
    /// Compressed here, once for all who ask.
    fn new() -> Self {
        let gzip = compressed(WIDGET.as_bytes()).ok().map(Variant::new);
        Self { plain: Variant::new(WIDGET.as_bytes().into()), gzip }
    }

    fn answer(&self, asked: &HeaderMap) -> Response {
        let gzip = self.gzip.as_ref().filter(|_| takes_gzip(asked));
        let Variant { etag, body } = gzip.unwrap_or(&self.plain);
        let etag = etag.as_str();
        let headers = [
            (header::CACHE_CONTROL, CACHE),
            (header::ETAG, etag),
            (header::VARY, "accept-encoding"),
            (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
            // Pages that are isolated load it too.
            (HeaderName::from_static("cross-origin-resource-policy"), "cross-origin"),
        ];
        if is_known(asked, etag) {
            return (StatusCode::NOT_MODIFIED, headers).into_response();
        }
        let kind = [(header::CONTENT_TYPE, "text/javascript; charset=utf-8")];
        let mut answer = (headers, kind, body.clone()).into_response();
        if gzip.is_some() {
            answer.headers_mut().insert(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"));
        }
        answer
    }
}

impl Variant {
    /// Its tag changes with its bytes and with nothing else.
    fn new(body: Bytes) -> Self {
        let digest = Sha256::digest(&body);
        let digits: String = digest.iter().take(8).map(|byte| format!("{byte:02x}")).collect();
        Self { etag: format!("\"{digits}\""), body }
    }
}

fn compressed(text: &[u8]) -> std::io::Result<Bytes> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(text)?;
    Ok(encoder.finish()?.into())
}

/// Whether `Accept-Encoding` names it, and not to refuse it (`q=0`).
fn takes_gzip(asked: &HeaderMap) -> bool {
    listed(asked, &header::ACCEPT_ENCODING).any(|coding| {
        let (name, weight) = coding.split_once(';').unwrap_or((coding, ""));
        let weight = weight.trim().strip_prefix("q=").map_or(Some(1.0), |weight| weight.parse::<f32>().ok());
        name.trim().eq_ignore_ascii_case("gzip") && weight.is_some_and(|weight| weight > 0.0)
    })
}

/// Whether who asks has this one already.
fn is_known(asked: &HeaderMap, etag: &str) -> bool {
    listed(asked, &header::IF_NONE_MATCH)
        .any(|tag| tag == "*" || tag.strip_prefix("W/").unwrap_or(tag) == etag)
}

/// The parts of a header that is a list.
fn listed<'a>(asked: &'a HeaderMap, name: &HeaderName) -> impl Iterator<Item = &'a str> {
    let lines = asked.get_all(name).iter().filter_map(|line| line.to_str().ok());
    lines.flat_map(|line| line.split(',')).map(str::trim)
}

/// The command on it names the address that the page was asked at.
async fn page(asked: HeaderMap) -> impl IntoResponse {
    let host = asked.get(header::HOST).and_then(|host| host.to_str().ok());
    let is_address = |host: &&str| host.chars().all(|c| c.is_ascii_alphanumeric() || ".:-[]".contains(c));
    let page = DEMO.replace("127.0.0.1:8787", host.filter(is_address).unwrap_or("127.0.0.1:8787"));
    let headers = [
        (header::CONTENT_TYPE, "text/html; charset=utf-8"),
        (header::CONTENT_SECURITY_POLICY, DEMO_MAY),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::CACHE_CONTROL, "no-cache"),
    ];
    (headers, page)
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use http_body_util::BodyExt;

    use super::*;

    fn asking(name: HeaderName, value: &str) -> HeaderMap {
        HeaderMap::from_iter([(name, HeaderValue::from_str(value).unwrap())])
    }

    #[tokio::test]
    async fn whoever_takes_it_compressed_gets_the_same_script() {
        let widget = Widget::new();
        let answer = widget.answer(&asking(header::ACCEPT_ENCODING, "br, GZIP;q=0.5"));
        assert_eq!(answer.headers()[header::CONTENT_ENCODING], "gzip");
        let etag = answer.headers()[header::ETAG].clone();
        let body = answer.into_body().collect().await.unwrap().to_bytes();
        assert!(body.len() < 6 * 1024, "{} bytes", body.len());
        let mut text = String::new();
        flate2::read::GzDecoder::new(&*body).read_to_string(&mut text).unwrap();
        assert_eq!(text, WIDGET);
        let plain = widget.answer(&HeaderMap::new());
        assert_ne!(plain.headers()[header::ETAG], etag, "other bytes, another tag");
        assert!(!plain.headers().contains_key(header::CONTENT_ENCODING));
        let mut again = asking(header::IF_NONE_MATCH, etag.to_str().unwrap());
        assert_eq!(widget.answer(&again).status(), StatusCode::OK, "who takes the plain one has not got it");
        again.insert(header::ACCEPT_ENCODING, HeaderValue::from_static("gzip"));
        let again = widget.answer(&again);
        assert_eq!(again.status(), StatusCode::NOT_MODIFIED);
        assert_eq!(again.headers()[header::VARY], "accept-encoding");
    }

    #[test]
    fn nobody_gets_what_was_not_asked_for() {
        for (accepted, takes) in [
            ("gzip", true),
            ("deflate, gzip;q=1.0, *;q=0.5", true),
            ("gzip;q=0", false),
            ("gzip; q=0.000", false),
            ("gzip;q=much", false),
            ("identity", false),
            ("*", false),
            ("", false),
        ] {
            assert_eq!(takes_gzip(&asking(header::ACCEPT_ENCODING, accepted)), takes, "{accepted}");
        }
    }
}
