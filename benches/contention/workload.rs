//! What is asked: which keys the callers meet on.

use headcount::likes::{ItemId, UserId};
use headcount::reservations::types::{RequestId, Seats, WorkshopName};

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Workload {
    Likes { items: u64 },
    Reservations { workshops: u64 },
}

pub const WORKLOADS: [Workload; 4] = [
    Workload::Likes { items: 1 },
    Workload::Likes { items: 10_000 },
    Workload::Reservations { workshops: 1 },
    Workload::Reservations { workshops: 1_000 },
];

pub enum Request {
    Like { user: UserId, item: ItemId },
    Reserve { workshop: WorkshopName, request: RequestId, seats: Seats },
}

/// Spreads neighbours over the keys and leaves out none: odd, and no multiple of 5, as the numbers of keys
/// are powers of ten.
const STRIDE: u64 = 7_919;
/// Seats in all workshops together: what comes later is refused, which costs the same.
const SEATS: u64 = 500_000;

impl Workload {
    pub fn name(self) -> &'static str {
        match self {
            Self::Likes { items: 1 } => "one hot item",
            Self::Likes { .. } => "10,000 items",
            Self::Reservations { workshops: 1 } => "one hot workshop",
            Self::Reservations { .. } => "1,000 workshops",
        }
    }

    pub fn is_likes(self) -> bool {
        matches!(self, Self::Likes { .. })
    }

    /// Of each workshop.
    pub fn capacity(self) -> u32 {
        let seats = match self {
            Self::Likes { .. } => 1,
            Self::Reservations { workshops } => SEATS / workshops,
        };
        u32::try_from(seats).expect("a constant's part")
    }

    pub fn keys(self) -> u64 {
        match self {
            Self::Likes { items } => items,
            Self::Reservations { workshops } => workshops,
        }
    }

    pub fn key_of_request(self, number: u64) -> u64 {
        number.wrapping_mul(STRIDE) % self.keys()
    }

    pub fn key_name(self, key: u64) -> String {
        format!("key-{key}")
    }

    /// Request number `number`, from texts to types as at the edge. Users and request ids are all new, and
    /// in no order: rising ones would flatter every store that keeps rows in the order of their keys.
    pub fn request(self, number: u64) -> Request {
        let id = format!("{:016x}", scramble(number));
        let key = self.key_name(self.key_of_request(number));
        match self {
            Self::Likes { .. } => Request::Like {
                user: UserId::parse(&id, 128).expect("a name"),
                item: ItemId::parse(&key, 128).expect("a name"),
            },
            Self::Reservations { .. } => Request::Reserve {
                workshop: WorkshopName::parse(&key).expect("a name"),
                request: RequestId::parse(&id).expect("an id"),
                seats: Seats::parse("1", 4).expect("a number"),
            },
        }
    }
}

/// SplitMix64's finalizer: one to one.
fn scramble(number: u64) -> u64 {
    let mut mixed = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}
