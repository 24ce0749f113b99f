//! PostgreSQL: a transaction a request, each one statement and one round trip.

mod pool;
mod server;

use tokio::runtime::Builder;

use crate::args::{Common, Postgres as Settings};
use crate::store::{Decision, Status, Store};
use crate::{Failure, api, serve};
use pool::Pool;
use server::Server;

/// Starts PostgreSQL, and serves until told to stop.
pub fn run(common: &Common, settings: &Settings) -> Result<(), Failure> {
    // Started by the thread that stays: the kernel ends a store whose starter is gone.
    let mut server = Server::start(&common.dir)?;
    Builder::new_multi_thread().enable_all().build()?.block_on(async {
        let slots = settings.slots;
        let pool = Pool::connect(&mut server, settings.pool).await?;
        serve::until_stopped(common.listen, api::app(Postgres { pool, slots, capacity: common.capacity }))
            .await
    })
}

/// PostgreSQL as a store.
#[derive(Clone)]
struct Postgres {
    pool: Pool,
    slots: i32,
    capacity: i32,
}

impl Store for Postgres {
    async fn like(&self, item: String, user: String) -> Result<bool, Failure> {
        let lane = self.pool.next();
        let slot = lane.turn() % self.slots;
        let row = lane.client.query_one(&lane.like, &[&item, &user, &slot]).await?;
        Ok(row.try_get::<_, i64>(0)? > 0)
    }

    async fn total(&self, item: String) -> Result<i64, Failure> {
        let lane = self.pool.next();
        Ok(lane.client.query_one(&lane.total, &[&item]).await?.try_get(0)?)
    }

    async fn reserve(&self, workshop: String, request: String, seats: i32) -> Result<Decision, Failure> {
        let lane = self.pool.next();
        let row =
            lane.client.query_one(&lane.reserve, &[&workshop, &request, &seats, &self.capacity]).await?;
        Ok(Decision {
            seats: row.try_get(0)?,
            accepted: row.try_get(1)?,
            capacity: row.try_get(2)?,
            reserved: row.try_get(3)?,
            replayed: row.try_get(4)?,
        })
    }

    async fn status(&self, workshop: String) -> Result<Status, Failure> {
        let lane = self.pool.next();
        let row = lane.client.query_one(&lane.status, &[&workshop]).await?;
        Ok(Status {
            capacity: row.try_get(0)?,
            reserved: row.try_get(1)?,
            accepted_requests: row.try_get(2)?,
            rejected_requests: row.try_get(3)?,
        })
    }
}
