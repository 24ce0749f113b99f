//! A few connections with their statements prepared, each of which pipelines the requests of many callers.

use std::sync::Arc;
use std::sync::atomic::{AtomicI32, AtomicUsize, Ordering};

use tokio_postgres::{Client, NoTls, Statement};

use super::server::Server;
use crate::Failure;

/// A like: the membership, and where it is new the total, in one transaction.
const LIKE: &str = "WITH added AS (INSERT INTO likes VALUES ($1, $2) ON CONFLICT DO NOTHING RETURNING 1), \
    counted AS (INSERT INTO totals SELECT $1, $3, 1 FROM added \
        ON CONFLICT (item, slot) DO UPDATE SET total = totals.total + 1) \
    SELECT count(*) FROM added";
const TOTAL: &str = "SELECT coalesce(sum(total), 0)::bigint FROM totals WHERE item = $1";
const RESERVE: &str = "SELECT * FROM reserve($1, $2, $3, $4)";
const STATUS: &str = "SELECT w.capacity, w.reserved, count(*) FILTER (WHERE a.accepted), \
        count(*) FILTER (WHERE NOT a.accepted) \
    FROM workshops w LEFT JOIN attempts a ON a.workshop = w.id WHERE w.id = $1 GROUP BY w.id";

/// One connection. Its statements run in the order in which they are sent, and are sent without waiting.
pub struct Lane {
    pub client: Client,
    pub like: Statement,
    pub total: Statement,
    pub reserve: Statement,
    pub status: Statement,
    turn: AtomicI32,
}

impl Lane {
    async fn connect(server: &Server) -> Result<Self, Failure> {
        let (client, connection) = server.config().connect(NoTls).await?;
        tokio::spawn(async move {
            if let Err(error) = connection.await {
                eprintln!("peers: a connection to PostgreSQL ended: {error}");
            }
        });
        Ok(Self {
            like: client.prepare(LIKE).await?,
            total: client.prepare(TOTAL).await?,
            reserve: client.prepare(RESERVE).await?,
            status: client.prepare(STATUS).await?,
            turn: AtomicI32::new(0),
            client,
        })
    }

    /// A number that goes round, from 0: callers in turn get different ones.
    pub fn turn(&self) -> i32 {
        self.turn.fetch_add(1, Ordering::Relaxed) & i32::MAX
    }
}

/// All of them; a cheap clone.
#[derive(Clone)]
pub struct Pool(Arc<Lanes>);

struct Lanes {
    lanes: Vec<Lane>,
    next: AtomicUsize,
}

impl Pool {
    /// Waits until the server answers, makes the tables, and opens `size` connections.
    pub async fn connect(server: &mut Server, size: u16) -> Result<Self, Failure> {
        server.ready().await?.batch_execute(include_str!("schema.sql")).await?;
        let mut lanes = Vec::new();
        for number in 0..size {
            let lane = Lane::connect(server).await?;
            // Connections begin at different slots, or all of them would want the same one at once.
            lane.turn.store(i32::from(number), Ordering::Relaxed);
            lanes.push(lane);
        }
        Ok(Self(Arc::new(Lanes { lanes, next: AtomicUsize::new(0) })))
    }

    /// The connection whose turn it is.
    pub fn next(&self) -> &Lane {
        let turn = self.0.next.fetch_add(1, Ordering::Relaxed);
        &self.0.lanes[turn % self.0.lanes.len()]
    }
}
