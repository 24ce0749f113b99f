//! A collector that takes what comes, and tells what that was.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::Value;

const ANSWER: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 2\r\n\r\n{}";
const PATIENCE: Duration = Duration::from_secs(60);

/// See the module. Dropped, it is not there any more.
pub struct Collector {
    port: u16,
    taken: Arc<Mutex<Taken>>,
}

#[derive(Default)]
struct Taken {
    bodies: Vec<Value>,
    is_gone: bool,
}

/// A span as it came.
#[derive(Debug, Clone, PartialEq)]
pub struct Span {
    pub trace: String,
    pub id: String,
    /// Empty without one.
    pub parent: String,
    pub name: String,
    pub kind: u64,
    /// Nanoseconds since 1970.
    pub from: u64,
    pub to: u64,
    /// Its attributes, as text.
    pub about: BTreeMap<String, String>,
    /// What its status says, if that is an error.
    pub error: Option<String>,
}

impl Collector {
    pub fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let taken = Arc::new(Mutex::new(Taken::default()));
        let takes = Arc::clone(&taken);
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                if takes.lock().unwrap().is_gone {
                    return;
                }
                let mut stream = stream.unwrap();
                let body = read(&stream);
                takes.lock().unwrap().bodies.push(body);
                // Not before: whoever is answered may end, and be asked after what it sent.
                stream.write_all(ANSWER).unwrap();
            }
        });
        Self { port, taken }
    }

    pub fn endpoint(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// Everything that came, as it came.
    pub fn text(&self) -> String {
        format!("{:?}", self.taken.lock().unwrap().bodies)
    }

    pub fn spans(&self) -> Vec<Span> {
        let taken = self.taken.lock().unwrap();
        let resources = taken.bodies.iter().flat_map(|body| list(&body["resourceSpans"]));
        let scopes = resources.flat_map(|resource| list(&resource["scopeSpans"]));
        scopes.flat_map(|scope| list(&scope["spans"])).map(Span::of).collect()
    }

    /// The spans of a trace, once so many of them have come.
    pub fn spans_of(&self, trace: &str, count: usize) -> Vec<Span> {
        let started = Instant::now();
        loop {
            let mut spans = self.spans();
            spans.retain(|span| span.trace == trace);
            if spans.len() >= count {
                return spans;
            }
            assert!(started.elapsed() < PATIENCE, "not {count} spans, but {spans:?}");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// The attributes of who sends.
    pub fn resource(&self) -> BTreeMap<String, String> {
        attributes(&self.taken.lock().unwrap().bodies[0]["resourceSpans"][0]["resource"]["attributes"])
    }
}

impl Drop for Collector {
    fn drop(&mut self) {
        self.taken.lock().unwrap().is_gone = true;
        // Its thread looks, and takes the listener with it.
        let _last = TcpStream::connect(("127.0.0.1", self.port));
    }
}

/// Reads one request.
fn read(stream: &TcpStream) -> Value {
    let mut reader = BufReader::new(stream);
    let mut length = 0;
    let (mut line, mut first) = (String::new(), String::new());
    while reader.read_line(&mut line).unwrap() > 2 {
        let header = line.to_ascii_lowercase();
        if first.is_empty() {
            first.clone_from(&line);
        } else if let Some(value) = header.strip_prefix("content-length:") {
            length = value.trim().parse().unwrap();
        } else if let Some(kind) = header.strip_prefix("content-type:") {
            assert_eq!(kind.trim(), "application/json");
        }
        line.clear();
    }
    assert!(first.starts_with("POST /v1/traces HTTP/1.1"), "{first}");
    let mut body = vec![0; length];
    reader.read_exact(&mut body).unwrap();
    serde_json::from_slice(&body).unwrap()
}

impl Span {
    /// OTLP's number for the span of a request's receiver.
    pub const SERVER: u64 = 2;
    const ERROR: u64 = 2;

    fn of(json: &Value) -> Self {
        let text = |name: &str| json[name].as_str().unwrap_or_default().to_owned();
        let time = |name: &str| json[name].as_str().unwrap().parse().unwrap();
        let status = &json["status"];
        let error = (status["code"] == Self::ERROR).then(|| status["message"].as_str().unwrap_or_default());
        Self {
            trace: text("traceId"),
            id: text("spanId"),
            parent: text("parentSpanId"),
            name: text("name"),
            kind: json["kind"].as_u64().unwrap(),
            from: time("startTimeUnixNano"),
            to: time("endTimeUnixNano"),
            about: attributes(&json["attributes"]),
            error: error.map(str::to_owned),
        }
    }
}

fn attributes(json: &Value) -> BTreeMap<String, String> {
    let one = |attribute: &Value| {
        let value = &attribute["value"];
        let value = value["stringValue"].as_str().or(value["intValue"].as_str()).unwrap_or("?");
        (attribute["key"].as_str().unwrap().to_owned(), value.to_owned())
    };
    list(json).iter().map(one).collect()
}

fn list(json: &Value) -> &[Value] {
    json.as_array().map_or(&[], Vec::as_slice)
}
