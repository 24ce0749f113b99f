//! WebSockets: the handshake. What follows is [`Socket`]'s.

use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use tungstenite::handshake::derive_accept_key;

use super::{listener, room, user};
use crate::http::App;
use crate::http::auth::user::EndUser;
use crate::http::auth::{Key, Write};
use crate::http::openapi::{Refusals, Rejections, TooMany};
use crate::http::problem::Problem;
use crate::http::query::Query;
use crate::http::schema;
use crate::http::takeover::{Offer, Takeover};
use crate::rooms::socket::Socket;

/// Listen and speak over a WebSocket. Who is refused hears it in HTTP, before the switch.
#[utoipa::path(get, path = "/rooms/{room}/socket", operation_id = "room_socket", tag = "rooms",
    params(("room" = schema::Room, Path),
        ("user" = Option<schema::Member>, Query, description = "who is online by this socket"),
        ("echo" = Option<bool>, Query, description = "`false`: not its own messages"),
        ("presence" = Option<bool>, Query, description = "`false`: not who comes and goes"),
        ("raw" = Option<bool>, Query, description = "just the text of messages, both ways"),
        ("since" = Option<schema::Position>, Query, description = "`epoch:offset`: where it left off")),
    responses((status = 101, description = "it is a WebSocket from here on",
            headers(("Sec-WebSocket-Accept" = String, description = "as RFC 6455 has it"))),
        (status = 426, body = String, content_type = "text/plain",
            description = "`expected ws`: the request asks for no WebSocket",
            headers(("Upgrade" = String, description = "websocket"),
                ("Sec-WebSocket-Version" = String, description = "13"))),
        Rejections, TooMany, Refusals))]
pub(in crate::http) async fn socket(
    key: Key<Write>,
    State(app): State<App>,
    uri: Uri,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let room = room(&uri, &app)?;
    let query = Query::parse(uri.query())?;
    if !asks_for_websocket(&headers) {
        return Ok(expected_ws());
    }
    app.origins.check(&headers)?;
    let Some(nonce) = headers.get(header::SEC_WEBSOCKET_KEY).filter(|nonce| nonce.len() == 24) else {
        let detail = "a WebSocket handshake has a Sec-WebSocket-Key of 16 bytes in base64";
        return Err(Problem::bad_request("invalid_handshake", detail));
    };
    let accept = HeaderValue::from_str(&derive_accept_key(nonce.as_bytes()));
    let Ok(accept) = accept else { return Ok(expected_ws()) };
    let permit = &key.permit;
    // An end user speaks in its own name, and never in none.
    let member = query.one("user")?.or(permit.user().map(EndUser::name));
    let member = member.map(|text| user(text, &app)).transpose()?;
    member.iter().try_for_each(|member| permit.is(member.as_str(), "user"))?;
    let (wishes, since) = listener(&query, true)?;
    let stay = permit.stay(&app)?;
    let membership = app.rooms.connect(&room, member, wishes, key.name.as_deref(), since).await;
    let membership = membership.map_err(|denied| app.denied(denied))?;
    let takeover: Takeover = match stay {
        None => Box::new(move |stream, read| Box::pin(Socket::new(membership, stream, &read).run())),
        Some(mut stay) => Box::new(move |stream, read| {
            Box::pin(async move {
                Socket::new(membership, stream, &read).run_with_token(stay.ended()).await;
            })
        }),
    };
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
    let switch = [
        (header::CONNECTION, HeaderValue::from_static("upgrade")),
        (header::UPGRADE, HeaderValue::from_static("websocket")),
        (header::SEC_WEBSOCKET_ACCEPT, accept),
    ];
    response.headers_mut().extend(switch);
    response.extensions_mut().insert(Offer::new(takeover));
    Ok(response)
}

fn asks_for_websocket(headers: &HeaderMap) -> bool {
    let names = |header: header::HeaderName, token: &str| {
        let values = headers.get_all(header).into_iter().filter_map(|value| value.to_str().ok());
        values.flat_map(|value| value.split(',')).any(|found| found.trim().eq_ignore_ascii_case(token))
    };
    names(header::UPGRADE, "websocket")
        && names(header::CONNECTION, "upgrade")
        && headers.get(header::SEC_WEBSOCKET_VERSION).is_some_and(|version| version == "13")
}

/// The seed's words.
fn expected_ws() -> Response {
    let headers = [(header::UPGRADE, "websocket"), (header::SEC_WEBSOCKET_VERSION, "13")];
    (StatusCode::UPGRADE_REQUIRED, headers, "expected ws").into_response()
}
