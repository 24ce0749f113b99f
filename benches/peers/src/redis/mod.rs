//! Redis: a script a request, pipelined over shared connections; the log is synced before any answer goes out.

mod server;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use redis::aio::MultiplexedConnection;
use redis::{AsyncCommands, Script};
use tokio::runtime::Builder;

use crate::args::{Common, Redis as Settings};
use crate::store::{Decision, Status, Store};
use crate::{Failure, api, serve};
use server::Server;

/// Starts Redis, and serves until told to stop.
pub fn run(common: &Common, settings: &Settings) -> Result<(), Failure> {
    let mut server = Server::start(&common.dir)?;
    Builder::new_multi_thread().enable_all().build()?.block_on(async {
        let store = Redis::connect(&mut server, settings.connections, common.capacity).await?;
        serve::until_stopped(common.listen, api::app(store)).await
    })
}

/// Redis as a store; a cheap clone.
#[derive(Clone)]
struct Redis(Arc<Shared>);

struct Shared {
    connections: Vec<MultiplexedConnection>,
    next: AtomicUsize,
    like: Script,
    reserve: Script,
    capacity: i32,
}

impl Redis {
    async fn connect(server: &mut Server, size: u16, capacity: i32) -> Result<Self, Failure> {
        let (like, reserve) =
            (Script::new(include_str!("like.lua")), Script::new(include_str!("reserve.lua")));
        let mut first = server.ready().await?;
        // Loaded once; from here on they are called by their digest.
        like.load_async(&mut first).await?;
        reserve.load_async(&mut first).await?;
        let mut connections = vec![first];
        for _ in 1..size {
            connections.push(server.connect().await?);
        }
        Ok(Self(Arc::new(Shared { connections, next: AtomicUsize::new(0), like, reserve, capacity })))
    }

    fn next(&self) -> MultiplexedConnection {
        let turn = self.0.next.fetch_add(1, Ordering::Relaxed);
        self.0.connections[turn % self.0.connections.len()].clone()
    }
}

impl Store for Redis {
    async fn like(&self, item: String, user: String) -> Result<bool, Failure> {
        let (members, total) = (format!("likes:{item}"), format!("total:{item}"));
        let mut call = self.0.like.key(members);
        Ok(call.key(total).arg(user).invoke_async(&mut self.next()).await?)
    }

    async fn total(&self, item: String) -> Result<i64, Failure> {
        let total: Option<i64> = self.next().get(format!("total:{item}")).await?;
        Ok(total.unwrap_or_default())
    }

    async fn reserve(&self, workshop: String, request: String, seats: i32) -> Result<Decision, Failure> {
        let (counts, attempts) = (format!("workshop:{workshop}"), format!("attempts:{workshop}"));
        let mut call = self.0.reserve.key(counts);
        call.key(attempts).arg(request).arg(seats).arg(self.0.capacity);
        let (seats, accepted, capacity, reserved, replayed) = call.invoke_async(&mut self.next()).await?;
        Ok(Decision { seats, accepted, capacity, reserved, replayed })
    }

    async fn status(&self, workshop: String) -> Result<Status, Failure> {
        let fields = ["reserved", "accepted", "rejected"];
        let (reserved, accepted, rejected): (Option<i32>, Option<i64>, Option<i64>) =
            self.next().hmget(format!("workshop:{workshop}"), &fields).await?;
        Ok(Status {
            capacity: self.0.capacity,
            reserved: reserved.unwrap_or_default(),
            accepted_requests: accepted.unwrap_or_default(),
            rejected_requests: rejected.unwrap_or_default(),
        })
    }
}
