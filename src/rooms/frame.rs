//! What a room says, encoded once for everyone who hears it.
//!
//! A frame is JSON. Readers get it in one of three shapes, each made at most once and then shared: as a
//! WebSocket frame, header and all; as the bare text of a message, for raw readers; as a server-sent event.

use std::borrow::Cow;
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use tungstenite::protocol::frame::FrameHeader;
use tungstenite::protocol::frame::coding::{Data, OpCode};

use super::types::{Body, ConnectionId, Message, Meta, Position, UserId};

/// One thing said.
#[derive(Debug)]
pub struct Frame {
    kind: Kind,
    /// Where its sender reads, so that a sender that wants no echo gets none.
    origin: Option<ConnectionId>,
    position: Position,
    json: String,
    /// What raw readers get.
    raw_text: Option<Box<str>>,
    socket: OnceLock<Bytes>,
    raw_socket: OnceLock<Bytes>,
    event: OnceLock<Bytes>,
    raw_event: OnceLock<Bytes>,
}

/// What is said.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A message.
    Message,
    /// A user came.
    Join,
    /// A user went.
    Leave,
    /// What a member says about itself changed.
    Update,
    /// Who is here: the first frame that a reader gets.
    Presence,
}

/// How a connection reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// WebSocket, JSON frames.
    Socket,
    /// WebSocket, the bare text of messages.
    RawSocket,
    /// Server-sent events, JSON.
    Events,
    /// Server-sent events, the bare text of messages.
    RawEvents,
}

#[derive(Debug, Serialize)]
struct MessageJson<'a> {
    r#type: &'static str,
    epoch: &'a str,
    offset: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    user: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    data: Option<&'a RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<&'a str>,
    at: i64,
}

#[derive(Debug, Serialize)]
struct MemberJson<'a> {
    r#type: &'static str,
    epoch: &'a str,
    offset: u64,
    user: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    meta: Option<&'a RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    online: Option<usize>,
}

#[derive(Debug, Serialize)]
struct PresenceJson<'a> {
    r#type: &'static str,
    epoch: &'a str,
    offset: u64,
    room: &'a str,
    online: usize,
    connections: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    members: Option<&'a RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    recovered: Option<bool>,
}

/// A member as snapshots and answers show it.
#[derive(Debug, Serialize)]
pub struct MemberView<'a> {
    user: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    meta: Option<&'a RawValue>,
}

/// The members as a JSON array, by user.
#[must_use]
pub fn members_json<'a>(members: impl Iterator<Item = (&'a UserId, Option<&'a Meta>)>) -> Box<RawValue> {
    let mut members: Vec<_> = members
        .map(|(user, meta)| MemberView { user: user.as_str(), meta: meta.and_then(Meta::json) })
        .collect();
    members.sort_unstable_by_key(|member| member.user);
    raw_value(&members)
}

/// Who is here, counted when a reader was let in.
#[derive(Debug)]
pub struct Snapshot {
    /// Users.
    pub online: usize,
    /// Connections.
    pub connections: usize,
    /// [`members_json`], for those who want to know.
    pub members: Option<Box<RawValue>>,
}

impl Meta {
    fn json(&self) -> Option<&RawValue> {
        serde_json::from_str(&self.0).ok()
    }
}

fn raw_value(value: &impl Serialize) -> Box<RawValue> {
    // What is serialized here has no map keys that are no text, and so always can be.
    serde_json::value::to_raw_value(value).unwrap_or_else(|_| RawValue::NULL.to_owned())
}

impl Frame {
    /// A message under its number.
    #[must_use]
    pub fn message(
        position: Position,
        message: &Message,
        at_ms: i64,
        origin: Option<ConnectionId>,
    ) -> Arc<Self> {
        let (text, data) = match &message.body {
            Body::Text(text) => (Some(&**text), None),
            Body::Data(json) => (None, serde_json::from_str(json).ok()),
        };
        let json = MessageJson {
            r#type: "message",
            epoch: &position.epoch,
            offset: position.offset,
            user: message.user.as_ref().map(UserId::as_str),
            text,
            data,
            id: message.id.as_deref(),
            at: at_ms,
        };
        let json = to_json(&json);
        Self::new(Kind::Message, position, json, Some(message.body.raw().into()), origin)
    }

    /// A user came, or went; `online` after it.
    #[must_use]
    pub fn member(
        kind: Kind,
        position: Position,
        user: &UserId,
        meta: Option<&Meta>,
        online: usize,
    ) -> Arc<Self> {
        let json = MemberJson {
            r#type: kind.word(),
            epoch: &position.epoch,
            offset: position.offset,
            user: user.as_str(),
            meta: meta.and_then(Meta::json),
            online: (kind != Kind::Update).then_some(online),
        };
        let json = to_json(&json);
        Self::new(kind, position, json, None, None)
    }

    /// Who is here.
    #[must_use]
    pub fn presence(
        position: Position,
        room: &str,
        snapshot: &Snapshot,
        recovered: Option<bool>,
    ) -> Arc<Self> {
        let json = PresenceJson {
            r#type: Kind::Presence.word(),
            epoch: &position.epoch,
            offset: position.offset,
            room,
            online: snapshot.online,
            connections: snapshot.connections,
            members: snapshot.members.as_deref(),
            recovered,
        };
        let json = to_json(&json);
        Self::new(Kind::Presence, position, json, None, None)
    }

    /// The same message without who said it, and its bytes; `None` if it is none of this user's.
    #[must_use]
    pub fn without(&self, user: &UserId) -> Option<(Arc<Self>, usize)> {
        #[derive(Deserialize)]
        struct Said<'a> {
            #[serde(borrow)]
            user: Option<Cow<'a, str>>,
            #[serde(borrow)]
            text: Option<Cow<'a, str>>,
            #[serde(borrow)]
            data: Option<&'a RawValue>,
            at: i64,
        }

        // Most are somebody else's, and need not be read.
        if self.kind != Kind::Message || !self.json.contains(&to_json(&user.as_str())) {
            return None;
        }
        let said: Said<'_> = serde_json::from_str(&self.json).ok()?;
        if said.user.as_deref() != Some(user.as_str()) {
            return None;
        }
        let body = match (said.text, said.data) {
            (Some(text), _) => Body::Text(text.into()),
            (None, data) => Body::Data(data.map_or("null", RawValue::get).into()),
        };
        let nobody_s = Message { user: None, body, id: None };
        let bytes = nobody_s.bytes();
        Some((Self::message(self.position.clone(), &nobody_s, said.at, self.origin), bytes))
    }

    fn new(
        kind: Kind,
        position: Position,
        json: String,
        raw_text: Option<Box<str>>,
        origin: Option<ConnectionId>,
    ) -> Arc<Self> {
        Arc::new(Self {
            kind,
            origin,
            position,
            json,
            raw_text,
            socket: OnceLock::new(),
            raw_socket: OnceLock::new(),
            event: OnceLock::new(),
            raw_event: OnceLock::new(),
        })
    }

    /// What is said.
    #[must_use]
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// The connection that its sender wrote on.
    #[must_use]
    pub fn origin(&self) -> Option<ConnectionId> {
        self.origin
    }

    /// The frame for a reader; `None` where it has nothing for raw ones.
    #[must_use]
    pub fn encoded(&self, mode: Mode) -> Option<Bytes> {
        let raw = self.raw_text.as_deref();
        match mode {
            Mode::Socket => Some(self.socket.get_or_init(|| text_frame(&self.json)).clone()),
            Mode::RawSocket => raw.map(|text| self.raw_socket.get_or_init(|| text_frame(text)).clone()),
            Mode::Events => Some(self.event.get_or_init(|| self.event(&self.json)).clone()),
            Mode::RawEvents => raw.map(|text| self.raw_event.get_or_init(|| self.event(text)).clone()),
        }
    }

    fn event(&self, text: &str) -> Bytes {
        let mut event = format!("id: {}\nevent: {}\n", self.position, self.kind.word());
        // Every kind of line end ends a line of an event; text that has none is one line.
        for line in text.split("\r\n").flat_map(|lines| lines.split(['\r', '\n'])) {
            event.extend(["data: ", line, "\n"]);
        }
        event.push('\n');
        event.into()
    }
}

impl Kind {
    /// As frames name it.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Message => "message",
            Self::Join => "join",
            Self::Leave => "leave",
            Self::Update => "update",
            Self::Presence => "presence",
        }
    }
}

fn to_json(value: &impl Serialize) -> String {
    serde_json::to_string(value).unwrap_or_default()
}

/// A text frame as a server sends it: whole, unmasked, and so the same for every socket.
#[must_use]
pub fn text_frame(text: &str) -> Bytes {
    data_frame(OpCode::Data(Data::Text), text.as_bytes())
}

/// Any frame, likewise.
#[must_use]
pub fn data_frame(opcode: OpCode, payload: &[u8]) -> Bytes {
    let header = FrameHeader { is_final: true, rsv1: false, rsv2: false, rsv3: false, opcode, mask: None };
    let mut frame = Vec::with_capacity(header.len(payload.len() as u64) + payload.len());
    let _vectors_take_everything = header.format(payload.len() as u64, &mut frame);
    frame.extend_from_slice(payload);
    frame.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(text: &str) -> Arc<Frame> {
        let position = Position { epoch: "e".into(), offset: 3 };
        let message = Message { user: UserId::parse("ada", 9), body: Body::Text(text.into()), id: None };
        Frame::message(position, &message, 7, None)
    }

    #[test]
    fn a_message_has_four_shapes() {
        let frame = message("a\r\nb\nc");
        let json = r#"{"type":"message","epoch":"e","offset":3,"user":"ada","text":"a\r\nb\nc","at":7}"#;
        assert_eq!(&frame.encoded(Mode::Socket).unwrap()[2..], json.as_bytes());
        assert_eq!(&frame.encoded(Mode::RawSocket).unwrap()[..], b"\x81\x06a\r\nb\nc");
        let event = format!("id: e:3\nevent: message\ndata: {json}\n\n");
        assert_eq!(frame.encoded(Mode::Events).unwrap(), event);
        let raw = "id: e:3\nevent: message\ndata: a\ndata: b\ndata: c\n\n";
        assert_eq!(frame.encoded(Mode::RawEvents).unwrap(), raw);
    }

    #[test]
    fn a_message_without_its_sender_says_the_same() {
        let position = Position { epoch: "e".into(), offset: 3 };
        let [ada, bob] = ["ada", "bob"].map(|user| UserId::parse(user, 9).unwrap());
        for body in [
            Body::Text("it's \"ada\"\n".into()),
            Body::Data(r#"{"user":"ada","n":1.50}"#.into()),
            Body::Data("null".into()),
        ] {
            let said = Message { user: Some(ada.clone()), body: body.clone(), id: Some("ada-1".into()) };
            let frame = Frame::message(position.clone(), &said, 7, None);
            assert!(frame.without(&bob).is_none());
            let (unnamed, bytes) = frame.without(&ada).unwrap();
            let expected = Message { user: None, body, id: None };
            assert_eq!(unnamed.json, Frame::message(position.clone(), &expected, 7, None).json);
            assert_eq!((bytes, unnamed.without(&ada).is_none()), (expected.bytes(), true));
        }
    }

    #[test]
    fn it_is_encoded_once() {
        let frame = message("hi");
        let (one, two) = (frame.encoded(Mode::Socket).unwrap(), frame.encoded(Mode::Socket).unwrap());
        assert_eq!(one.as_ptr(), two.as_ptr());
    }
}
