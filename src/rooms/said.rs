//! What a WebSocket says, as its room understands it: text is a message, and so are some frames of JSON.

use std::borrow::Cow;
use std::sync::Arc;

use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::time::Instant;

use super::command::{Command, From};
use super::frame::Mode;
use super::link::Link;
use super::types::{Body, Message, Meta, even_null, is_message_id};

/// What tells a frame from any other text, which is a message as it is.
#[derive(Debug, Deserialize)]
struct Typed<'a> {
    #[serde(borrow)]
    r#type: Cow<'a, str>,
}

/// What a client may say in JSON.
#[derive(Debug, Deserialize)]
struct Said<'a> {
    #[serde(borrow, default, deserialize_with = "even_null")]
    meta: Option<&'a RawValue>,
    #[serde(borrow)]
    text: Option<Cow<'a, str>>,
    #[serde(borrow, default, deserialize_with = "even_null")]
    data: Option<&'a RawValue>,
    #[serde(borrow, default)]
    id: Option<Cow<'a, str>>,
}

/// What a text tells the room; an error is the word for why it tells nothing.
///
/// # Errors
/// `invalid_meta`, `invalid_message`, `no_user`.
pub(super) fn understand(
    link: &Arc<Link>,
    text: &str,
    max_meta_bytes: usize,
) -> Result<Command, &'static str> {
    let as_it_is = || Ok(say(link, Body::Text(text.into()), None));
    if link.wishes.mode != Mode::Socket || !text.starts_with('{') {
        return as_it_is();
    }
    let Ok(Typed { r#type }) = serde_json::from_str(text) else { return as_it_is() };
    let said = serde_json::from_str::<Said<'_>>(text);
    match &*r#type {
        "update" => {
            let said = said.map_err(|_| "invalid_meta")?;
            let meta = said.meta.filter(|meta| meta.get().len() <= max_meta_bytes).ok_or("invalid_meta")?;
            if link.user.is_none() {
                return Err("no_user");
            }
            Ok(Command::Update { link: Arc::clone(link), meta: Meta(meta.get().into()) })
        }
        "message" => {
            let said = said.map_err(|_| "invalid_message")?;
            let id: Option<Arc<str>> = match said.id {
                Some(id) if !is_message_id(&id) => return Err("invalid_message"),
                id => id.map(|id| (*id).into()),
            };
            match (said.text, said.data) {
                (Some(text), None) => Ok(say(link, Body::Text((*text).into()), id)),
                (None, Some(data)) => Ok(say(link, Body::Data(data.get().into()), id)),
                _ => Err("invalid_message"),
            }
        }
        _ => as_it_is(),
    }
}

fn say(link: &Arc<Link>, body: Body, id: Option<Arc<str>>) -> Command {
    let link = Arc::clone(link);
    let message = Message { user: link.user.clone(), body, id };
    Command::Say { message, from: From::Socket(link), accepted: Instant::now() }
}
