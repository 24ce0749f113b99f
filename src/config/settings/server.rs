use std::net::{Ipv4Addr, SocketAddr};

use serde::{Deserialize, Serialize};

use crate::config::rule::{Keys, Rule, whole};

/// `[server]`: listeners, connections and requests.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Server {
    /// Address of the public API. Port 0 takes a free one. An address that other machines reach needs `auth.keys`,
    /// or `auth.open = true`.
    pub listen: SocketAddr,
    /// Address of the admin API with `/metrics`; the same condition holds.
    pub admin_listen: SocketAddr,
    /// Most connections that wait to be accepted; the system may allow fewer (`net.core.somaxconn`). 1 to 65,535.
    pub backlog: u32,
    /// Most connections open at once. 1 to 1,000,000.
    pub max_connections: usize,
    /// Milliseconds in which a request's header must arrive; a keep-alive connection idle for so long is closed too.
    /// 10 to 600,000 (ten minutes).
    pub header_timeout_ms: u64,
    /// Milliseconds that an answer's bytes wait to be taken before the connection is closed. 10 to 600,000.
    pub write_timeout_ms: u64,
    /// Milliseconds for each step of a request: its body, its decision, an exact total. 10 to 600,000.
    pub request_timeout_ms: u64,
    /// Most bytes in a request's body; a larger one is refused unread. 256 to 16,777,216 (16 MiB).
    pub max_body_bytes: usize,
    /// Milliseconds that a shutdown waits for requests already taken; 0 waits for none. 0 to 3,600,000 (an hour).
    pub drain_timeout_ms: u64,
    /// Threads that serve HTTP; absent: one a core. 1 to 1,024.
    pub worker_threads: Option<usize>,
    /// Seconds in the `Retry-After` of an `overloaded` answer. 1 to 3,600.
    pub retry_after_s: u32,
    /// Mounts `POST /noop/...`: parses and answers like a like or a reservation and decides nothing, so that a
    /// measurement can tell the cost of HTTP from the cost of deciding.
    pub noop_routes: bool,
    /// Sites whose pages may call from a browser: their origins as a browser writes them, or `*` alone for every site.
    /// Empty: none but this service's own. At most 100.
    pub cors_origins: Vec<String>,
    /// Serves `GET /demo`, a page with like buttons.
    pub demo: bool,
    /// Viewers of the operator's page at once; one snapshot a second serves them all. 1 to 1,000.
    pub max_console_viewers: usize,
}

impl Default for Server {
    fn default() -> Self {
        Self {
            listen: SocketAddr::from((Ipv4Addr::LOCALHOST, 8787)),
            admin_listen: SocketAddr::from((Ipv4Addr::LOCALHOST, 8788)),
            backlog: 4_096,
            max_connections: 20_000,
            header_timeout_ms: 10_000,
            write_timeout_ms: 10_000,
            request_timeout_ms: 10_000,
            max_body_bytes: 65_536,
            drain_timeout_ms: 30_000,
            worker_threads: None,
            retry_after_s: 1,
            noop_routes: false,
            cors_origins: Vec::new(),
            demo: false,
            max_console_viewers: 16,
        }
    }
}

impl Server {
    pub(crate) const KEYS: Keys = &[
        ("listen", Rule::Address),
        ("admin_listen", Rule::Address),
        ("backlog", whole(1, 65_535)),
        ("max_connections", whole(1, 1_000_000)),
        ("header_timeout_ms", whole(10, 600_000)),
        ("write_timeout_ms", whole(10, 600_000)),
        ("request_timeout_ms", whole(10, 600_000)),
        ("max_body_bytes", whole(256, 16_777_216)),
        ("drain_timeout_ms", whole(0, 3_600_000)),
        ("worker_threads", whole(1, 1_024)),
        ("retry_after_s", whole(1, 3_600)),
        ("noop_routes", Rule::Switch),
        ("cors_origins", Rule::Origins { max: 100 }),
        ("demo", Rule::Switch),
        ("max_console_viewers", whole(1, 1_000)),
    ];
}
