//! The features together on one partition: one store, one transaction a batch.

use crate::likes::actor::LikesActors;
use crate::partition::{self, Decided, Refusal, Vitals, Workload};
use crate::reservations::actor::ReservationActors;
use crate::rooms::records::RoomRecords;
use crate::store::{self, Durability, Store, Syncer};
use crate::usage::Usage;
use crate::{likes, people, reservations, rooms};

/// Whatever a partition can be asked.
#[derive(Debug)]
pub enum Command {
    /// About likes.
    Likes(likes::Command),
    /// About reservations.
    Reservations(reservations::Command),
    /// About the durable history of rooms.
    Rooms(rooms::Command),
    /// About a person, whatever it did.
    People(people::Command),
}

impl From<likes::Command> for Command {
    fn from(command: likes::Command) -> Self {
        Self::Likes(command)
    }
}

impl From<reservations::Command> for Command {
    fn from(command: reservations::Command) -> Self {
        Self::Reservations(command)
    }
}

impl From<rooms::Command> for Command {
    fn from(command: rooms::Command) -> Self {
        Self::Rooms(command)
    }
}

impl From<people::Command> for Command {
    fn from(command: people::Command) -> Self {
        Self::People(command)
    }
}

impl partition::Command for Command {
    fn release(self) {
        match self {
            Self::Likes(command) => command.release(),
            Self::Reservations(command) => command.release(),
            Self::Rooms(command) => command.release(),
            Self::People(command) => command.release(),
        }
    }

    fn refuse(self, refusal: Refusal) {
        match self {
            Self::Likes(command) => command.refuse(refusal),
            Self::Reservations(command) => command.refuse(refusal),
            Self::Rooms(command) => command.refuse(refusal),
            Self::People(command) => command.refuse(refusal),
        }
    }

    fn is_chore(&self) -> bool {
        match self {
            Self::Likes(command) => command.is_chore(),
            Self::Reservations(command) => command.is_chore(),
            Self::Rooms(command) => command.is_chore(),
            Self::People(command) => command.is_chore(),
        }
    }
}

/// All actors of one partition over their store.
#[derive(Debug)]
pub struct Engine<S> {
    store: S,
    likes: LikesActors,
    reservations: ReservationActors,
    rooms: RoomRecords,
    usage: Usage,
    /// States in memory of likes and of reservations, as the usage knows them.
    metered: (usize, usize),
    #[cfg(debug_assertions)]
    faults: faults::Injected,
}

impl<S: Store> Engine<S> {
    /// Actors with nothing in memory yet, over an open store.
    pub fn new(
        store: S,
        likes: LikesActors,
        reservations: ReservationActors,
        rooms: RoomRecords,
        usage: Usage,
    ) -> Self {
        Self {
            store,
            likes,
            reservations,
            rooms,
            usage,
            metered: (0, 0),
            #[cfg(debug_assertions)]
            faults: faults::Injected::default(),
        }
    }

    /// The same, failing on purpose, for tests.
    #[cfg(debug_assertions)]
    #[must_use]
    pub fn with_faults(mut self, faults: crate::config::Faults) -> Self {
        self.faults = faults.into();
        self
    }

    fn forget(&mut self) {
        self.likes.forget();
        self.reservations.forget();
        self.rooms.forget();
        self.meter();
    }

    /// Notes how many states are in memory; what they cost is the time in between.
    fn meter(&mut self) {
        let now = (self.likes.resident(), self.reservations.resident());
        let change = |from: usize, to: usize| to.cast_signed().wrapping_sub(from.cast_signed()) as i64;
        if now.0 != self.metered.0 {
            self.usage.likes.active.change(change(self.metered.0, now.0));
        }
        if now.1 != self.metered.1 {
            self.usage.workshops.active.change(change(self.metered.1, now.1));
        }
        self.metered = now;
    }
}

impl<S: Store> Workload for Engine<S> {
    type Command = Command;

    fn decide(&mut self, batch: &mut [Command], now_ms: i64) -> Result<Decided, store::Error> {
        #[cfg(debug_assertions)]
        self.faults.before_deciding(batch)?;
        let mut likes = Vec::with_capacity(batch.len());
        let (mut reservations, mut rooms, mut people) = (Vec::new(), Vec::new(), Vec::new());
        for command in batch {
            match command {
                Command::Likes(command) => likes.push(command),
                Command::Reservations(command) => reservations.push(command),
                Command::Rooms(command) => rooms.push(command),
                Command::People(command) => people.push(command),
            }
        }
        self.store.begin()?;
        if self.likes.decide(&mut self.store, &mut likes, S::EXCLUSIVE, now_ms)? == Decided::Conflict {
            return Ok(Decided::Conflict);
        }
        let decided = self.reservations.decide(&mut self.store, &mut reservations, S::EXCLUSIVE, now_ms)?;
        if decided == Decided::Conflict {
            return Ok(Decided::Conflict);
        }
        if self.rooms.decide(&mut self.store, &mut rooms, S::EXCLUSIVE, now_ms)? == Decided::Conflict {
            return Ok(Decided::Conflict);
        }
        // Last: what the others of the batch were told is done, this finds.
        let actors = (&mut self.likes, &mut self.rooms);
        people::desk::decide(&mut self.store, &mut people, actors, now_ms)
    }

    fn has_changed(&self) -> bool {
        self.store.has_changed()
    }

    fn commit(&mut self, now_ms: i64) -> Result<Durability, store::Error> {
        #[cfg(debug_assertions)]
        self.faults.before_commit()?;
        let durability = self.store.commit(now_ms)?;
        self.meter();
        // Streams that wake up now ask through the mailbox: their answers wait for this commit's sync, too.
        self.reservations.committed();
        Ok(durability)
    }

    fn syncer(&self) -> Result<Box<dyn Syncer>, store::Error> {
        self.store.syncer()
    }

    fn rollback(&mut self) -> Result<(), store::Error> {
        self.forget();
        self.store.rollback()
    }

    fn reopen(&mut self) -> Result<(), store::Error> {
        self.forget();
        self.store.reopen()
    }

    fn forget_idle(&mut self) {
        self.likes.forget_idle();
        self.reservations.forget_idle();
        self.rooms.forget_idle();
        self.meter();
    }

    fn vitals(&self) -> Vitals {
        Vitals {
            log_bytes: self.store.log_bytes(),
            resident: vec![
                ("likes", self.likes.resident()),
                ("reservations", self.reservations.resident()),
                ("rooms", self.rooms.resident()),
            ],
        }
    }

    fn come_to_rest(&mut self, now_ms: i64) -> Result<(), store::Error> {
        self.store.begin()?;
        self.store.mark_time(now_ms)?;
        let _the_checkpoint_syncs_it = self.store.commit(now_ms)?;
        self.store.checkpoint()
    }
}

/// Failures on purpose (`[faults]`), so that tests can watch what follows. Not in a release build.
#[cfg(debug_assertions)]
mod faults {
    use super::Command;
    use crate::config::Faults;
    use crate::store::Error;
    use crate::{likes, reservations, rooms};

    #[derive(Debug, Default)]
    pub(super) struct Injected {
        faults: Faults,
        commits: u64,
        rooms_opened: u64,
    }

    impl From<Faults> for Injected {
        fn from(faults: Faults) -> Self {
            Self { faults, commits: 0, rooms_opened: 0 }
        }
    }

    impl Injected {
        pub(super) fn before_deciding(&mut self, batch: &[Command]) -> Result<(), Error> {
            let id = &*self.faults.panic_on;
            let named = |command: &Command| match command {
                Command::Likes(likes::Command::Set { user, .. }) => user.as_str() == id,
                Command::Likes(likes::Command::SetAll { wanted, .. }) => {
                    wanted.iter().any(|wanted| wanted.user.as_str() == id)
                }
                Command::Reservations(reservations::Command::Reserve { request, .. }) => {
                    request.as_str() == id
                }
                _ => false,
            };
            assert!(id.is_empty() || !batch.iter().any(named), "faults.panic_on = {id}");
            let opens = |command: &Command| matches!(command, Command::Rooms(rooms::Command::Open { .. }));
            if self.faults.fail_first_room && batch.iter().any(opens) {
                self.rooms_opened += 1;
                if self.rooms_opened == 1 {
                    return Err(Error::Engine("faults.fail_first_room".to_owned()));
                }
            }
            Ok(())
        }

        pub(super) fn before_commit(&mut self) -> Result<(), Error> {
            std::thread::sleep(std::time::Duration::from_millis(self.faults.commit_delay_ms));
            self.commits += 1;
            match self.faults.fail_commit_every {
                every @ 1.. if self.commits.is_multiple_of(every) => {
                    Err(Error::Engine("faults.fail_commit_every".to_owned()))
                }
                _ => Ok(()),
            }
        }
    }
}
