//! What is counted: commands on one hot key through one partition's engine, over a real file.

use headcount::config::{Config, Reservations, Storage};
use headcount::data_dir::DataDir;
use headcount::engine::Command;
use headcount::likes::{self, ItemId, UserId};
use headcount::partition::{Command as _, Workload as _, reply};
use headcount::reservations::command::{Reserved, Wanted};
use headcount::reservations::{self, RequestId, Seats, WorkshopName};
use headcount::server::Engines;

use crate::{BATCH, Failure};

#[derive(Clone, Copy)]
pub enum Kind {
    Like,
    Reservation,
}

impl Kind {
    pub const ALL: [Self; 2] = [Self::Like, Self::Reservation];

    pub fn name(self) -> &'static str {
        match self {
            Self::Like => "like",
            Self::Reservation => "reservation",
        }
    }

    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }

    /// Number `number`: a user or a request of its own, in no order.
    fn command(self, number: u64, shards: u32) -> Result<Command, Failure> {
        let id = format!("{:016x}", number.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        Ok(match self {
            Self::Like => {
                let user = UserId::parse(&id, 128).ok_or("a user")?;
                let item = ItemId::parse("hot", 128).ok_or("an item")?;
                let (shard, reply) = (user.shard(shards), reply().0);
                likes::Command::Set { shard, user, item, liked: true, reply }.into()
            }
            Self::Reservation => reservations::Command::Reserve {
                workshop: WorkshopName::parse("hot").ok_or("a workshop")?,
                request: RequestId::parse(&id).ok_or("a request id")?,
                wanted: Wanted::seats(Seats::parse("1", 4).ok_or("seats")?),
                as_it_stands: false,
                reply: reply().0,
            }
            .into(),
        })
    }
}

/// Decides so many commands, each a first one, and makes each batch durable.
pub fn run(kind: Kind, commands: u64) -> Result<(), Failure> {
    let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR"))?;
    let config = Config {
        storage: Storage { data_dir: dir.path().join("data"), partitions: Some(1), ..Storage::default() },
        reservations: Reservations { default_capacity: 1_000_000, ..Reservations::default() },
        ..Config::default()
    };
    let mut data = DataDir::open(&config.storage.data_dir, config.likes.shards, config.storage.partitions)?;
    let shards = data.manifest().shards;
    let mut opened = Engines::open(&config, &mut data)?;
    let engine = opened.engines.first_mut().ok_or("no partition")?;
    let mut syncer = engine.syncer()?;
    for first in (0..commands).step_by(BATCH as usize) {
        let numbers = first..(first + BATCH).min(commands);
        let mut batch = numbers.map(|number| kind.command(number, shards)).collect::<Result<Vec<_>, _>>()?;
        // A time that goes on, the same in every run.
        let now_ms = 1_700_000_000_000 + i64::try_from(first)? / 100;
        engine.decide(&mut batch, now_ms)?;
        engine.commit(now_ms)?;
        syncer.sync()?;
        if !batch.iter().all(is_first_decision) {
            return Err("a command was not decided, or was decided before".into());
        }
        batch.into_iter().for_each(Command::release);
    }
    Ok(())
}

fn is_first_decision(command: &Command) -> bool {
    match command {
        Command::Likes(likes::Command::Set { reply, .. }) => reply.outcome() == Some(&true),
        Command::Reservations(reservations::Command::Reserve { reply, .. }) => {
            matches!(reply.outcome(), Some(Ok(Reserved::Decided { replayed: false, .. })))
        }
        _ => false,
    }
}
