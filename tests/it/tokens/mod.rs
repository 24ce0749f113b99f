//! Tokens of end users: who signs them, what they let one do, and how they come.

mod believed;
mod documented;
mod own;
mod policy;
mod streams;

use std::io::{Read, Write};
use std::time::{SystemTime, UNIX_EPOCH};

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use hmac::{Hmac, KeyInit, Mac};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::client::Answer;
use crate::raw;
use crate::service::{Service, Setup};

/// What `auth.keys` holds the digest of, with every scope.
pub const KEY: &str = "hc_the-back-end";

/// 32 bytes.
pub fn secret(which: u8) -> Vec<u8> {
    (0..32).map(|at| at ^ which).collect()
}

/// The same as the settings have it.
pub fn secret_base64(which: u8) -> String {
    STANDARD.encode(secret(which))
}

pub fn now_s() -> i64 {
    i64::try_from(SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs()).unwrap()
}

/// A service that takes [`KEY`] and what the secrets of these names sign.
pub fn setup(secrets: &[(&str, u8)]) -> Setup {
    let digest: String = Sha256::digest(KEY).iter().map(|byte| format!("{byte:02x}")).collect();
    let keys = format!("[{{ name = 'ops', sha256 = '{digest}', scopes = ['read', 'write', 'admin'] }}]");
    let one = |(name, which): &(&str, u8)| {
        format!("{{ name = '{name}', secret_base64 = '{}' }}", secret_base64(*which))
    };
    let secrets: Vec<String> = secrets.iter().map(one).collect();
    Setup::new().with("auth.keys", keys).with("auth.token_secrets", format!("[{}]", secrets.join(", ")))
}

pub fn start() -> Service {
    setup(&[("site", 1)]).start()
}

pub fn sign_as(header: &Value, claims: &Value, which: u8) -> String {
    let part = |json: &Value| URL_SAFE_NO_PAD.encode(json.to_string());
    let signed = format!("{}.{}", part(header), part(claims));
    let mac = Hmac::<Sha256>::new_from_slice(&secret(which)).unwrap().chain_update(signed.as_bytes());
    format!("{signed}.{}", URL_SAFE_NO_PAD.encode(mac.finalize().into_bytes()))
}

pub fn sign(claims: &Value) -> String {
    sign_as(&json!({"alg": "HS256", "typ": "JWT"}), claims, 1)
}

/// A good token of a user, with more claims.
pub fn token_with(user: &str, more: Value) -> String {
    let mut claims = json!({"sub": user, "exp": now_s() + 300});
    claims.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    sign(&claims)
}

pub fn token(user: &str) -> String {
    token_with(user, json!({}))
}

/// What a browser sends to open a WebSocket, but for its `Origin`.
pub const UPGRADE: &str = "connection: upgrade\r\nupgrade: websocket\r\nsec-websocket-version: 13\r\n\
                           sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n";

/// Sends a request with header lines, and reads to the end of the connection, which is to be closed.
pub fn send(address: &str, headers: &str, method: &str, path: &str, body: &str) -> Answer {
    let length = body.len();
    let head = format!("{method} {path} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n");
    raw::exchange(address, format!("{head}content-length: {length}\r\n{headers}\r\n{body}").as_bytes())
}

pub fn bearer(credential: &str) -> String {
    format!("authorization: Bearer {credential}\r\n")
}

/// Opens what has no end, and goes away: the status, and the head.
pub fn open(address: &str, headers: &str, path: &str) -> (u16, String) {
    let mut stream = raw::connect(address);
    write!(stream, "GET {path} HTTP/1.1\r\nhost: {address}\r\n{headers}\r\n").unwrap();
    let (mut head, mut byte) = (Vec::new(), [0]);
    while !head.ends_with(b"\r\n\r\n") && stream.read(&mut byte).unwrap() > 0 {
        head.extend(byte);
    }
    let head = String::from_utf8(head).unwrap();
    (head.split(' ').nth(1).unwrap().parse().unwrap(), head)
}
