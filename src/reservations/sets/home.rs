//! A home's batch: the sets that some commands name are loaded once, each command is decided in arrival order, and
//! what changed is saved once.

use foldhash::HashMap;

use super::command::{Command, Step, Todo, Told, Wanted};
use super::decide::{self, Ask, Wrong};
use crate::reservations::decide::Defaults;
use crate::reservations::types::{HolderName, RequestId};
use crate::store::bookings::HolderKey;
use crate::store::sets::{SetChange, SetRow, SetState};
use crate::store::{BookingsStore, Error, Saved, SetsStore};

/// No person's surrogate: of a name that was never stored.
const NOBODY: HolderKey = HolderKey(-1);
/// Names come from the store, where only names of a length that was allowed once are.
const ANY_LENGTH: usize = usize::MAX;

struct Touched {
    loaded: Option<SetRow>,
    now: Option<SetRow>,
}

/// What a batch came to, for others to hear of once it is committed.
#[derive(Debug, Default)]
pub struct Came {
    /// What sets have become, as asked for: for good, held and so on.
    pub to: Vec<Turn>,
    /// When the first hold of those that changed ends, in ms since 1970.
    pub first_end_at_ms: Option<i64>,
    /// When the first of all ends, where that was looked up.
    pub next_due_at_ms: Option<Option<i64>>,
}

impl Came {
    /// What came of another run of the same batch comes after this.
    pub(in crate::reservations) fn then(&mut self, later: Self) {
        self.to.extend(later.to);
        self.first_end_at_ms = [self.first_end_at_ms, later.first_end_at_ms].into_iter().flatten().min();
        self.next_due_at_ms = later.next_due_at_ms.or(self.next_due_at_ms);
    }
}

/// What a set has become.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Turn {
    /// Its state.
    pub state: SetState,
    /// Whether it asked for a hold.
    pub hold: bool,
}

/// Decides commands about sets and saves what changed; `None` is a conflict.
///
/// # Errors
/// The store's.
pub fn decide<S: SetsStore + BookingsStore>(
    store: &mut S,
    commands: &mut [&mut Command],
    defaults: &Defaults,
    now_ms: i64,
) -> Result<Option<Came>, Error> {
    let mut sets = load(store, commands)?;
    let mut came = Came::default();
    for command in commands.iter_mut() {
        match &mut **command {
            Command::One { request, step, reply } => {
                let Some(touched) = sets.get_mut(&*request) else { continue };
                reply.set(decide_one(store, request, touched, step, defaults, now_ms)?);
            }
            Command::Page { after, limit, reply } => {
                let ids = store.list_sets(after, *limit)?;
                let texts: Vec<&str> = ids.iter().map(|id| &**id).collect();
                let rows = store.load_sets(&texts)?;
                reply.set(ids.into_iter().zip(rows).filter_map(|(id, row)| Some((id, row?))).collect());
            }
            Command::Todo { after, limit, reply } => {
                // What this batch changes is seen at the next look, which its end brings about.
                reply.set(Todo {
                    unfinished: store.unfinished_sets(after, *limit)?,
                    due: store.due_sets(now_ms, *limit)?,
                });
                came.next_due_at_ms = Some(store.next_set_due_at_ms()?);
            }
        }
    }
    Ok(match save(store, &mut sets, &mut came)? {
        Saved::Done => Some(came),
        Saved::Conflict => None,
    })
}

fn load<S: SetsStore>(
    store: &mut S,
    commands: &[&mut Command],
) -> Result<HashMap<RequestId, Touched>, Error> {
    let mut requests: Vec<RequestId> = commands
        .iter()
        .filter_map(|command| match &**command {
            Command::One { request, .. } => Some(request.clone()),
            Command::Todo { .. } | Command::Page { .. } => None,
        })
        .collect();
    requests.sort_unstable();
    requests.dedup();
    let ids: Vec<&str> = requests.iter().map(RequestId::as_str).collect();
    let loaded = store.load_sets(&ids)?;
    let touched =
        |(request, set): (RequestId, Option<SetRow>)| (request, Touched { now: set.clone(), loaded: set });
    Ok(requests.into_iter().zip(loaded).map(touched).collect())
}

fn decide_one<S: SetsStore + BookingsStore>(
    store: &mut S,
    request: &RequestId,
    touched: &mut Touched,
    step: &Step,
    defaults: &Defaults,
    now_ms: i64,
) -> Result<Result<Box<Told>, Wrong>, Error> {
    let mut is_new = false;
    let outcome = match (step, &mut touched.now) {
        (Step::Begin { wanted, default_ttl_ms }, now @ None) => {
            let holder = match &wanted.holder {
                None => None,
                Some(name) => match known_holder(store, name)? {
                    NOBODY => store.create_holders(&[name.as_str()])?.into_iter().next(),
                    known => Some(known),
                },
            };
            *now = Some(decide::begin(ask(wanted, holder), *default_ttl_ms, now_ms));
            is_new = true;
            Ok(())
        }
        (_, None) => Err(Wrong::NotFound),
        // What this batch has changed of it is not stored under its version yet.
        (Step::Forget { version }, Some(set)) if touched.loaded.as_ref() == Some(&*set) => {
            if decide::may_be_forgotten(set, *version) {
                store.remove_set(request.as_str())?;
                (touched.loaded, touched.now) = (None, None);
            }
            Ok(())
        }
        (step, Some(set)) => {
            decide::look_at_the_clock(set, now_ms);
            match step {
                Step::Look | Step::Forget { .. } => Ok(()),
                Step::Begin { wanted, .. } | Step::Again(wanted) => {
                    let holder = wanted.holder.as_ref().map(|name| known_holder(store, name)).transpose()?;
                    let is_own = set.holder == holder;
                    decide::what_differs(set, &ask(wanted, holder))
                        .map_or(Ok(()), |field| Err(Wrong::Reused { field, is_own }))
                }
                Step::Decide { verdict, round } => {
                    decide::decide(set, verdict.clone(), *round, defaults, now_ms);
                    Ok(())
                }
                Step::Change { of: Some(name), .. } if set.holder != Some(known_holder(store, name)?) => {
                    Err(Wrong::NotFound)
                }
                Step::Change { change, .. } => decide::change(set, *change, defaults),
                Step::Finish { done, round, keys } => {
                    decide::finish(set, *done, *round, keys);
                    Ok(())
                }
            }
        }
    };
    let told = match (outcome, &touched.now) {
        (Ok(()), Some(set)) => Ok(Box::new(Told {
            holder: match set.holder {
                Some(holder) => {
                    store.holder_name(holder)?.and_then(|name| HolderName::parse(&name, ANY_LENGTH))
                }
                None => None,
            },
            ends_at_ms: set.hold.then(|| set.expires_at_ms.unwrap_or(decide::would_end_at(set, defaults))),
            set: set.clone(),
            is_new,
        })),
        (Ok(()), None) => Err(Wrong::NotFound),
        (Err(wrong), _) => Err(wrong),
    };
    Ok(told)
}

fn known_holder<S: BookingsStore>(store: &mut S, name: &HolderName) -> Result<HolderKey, Error> {
    Ok(store.load_holders(&[name.as_str()])?.into_iter().next().flatten().unwrap_or(NOBODY))
}

fn ask(wanted: &Wanted, holder: Option<HolderKey>) -> Ask {
    Ask { lines: wanted.lines.clone(), hold: wanted.hold, ttl_ms: wanted.ttl_ms, holder }
}

fn save<S: SetsStore>(
    store: &mut S,
    sets: &mut HashMap<RequestId, Touched>,
    came: &mut Came,
) -> Result<Saved, Error> {
    for touched in sets.values_mut().filter(|touched| touched.now != touched.loaded) {
        let before = touched.loaded.as_ref();
        if let Some(now) = &mut touched.now {
            now.version = before.map_or(0, |before| before.version) + 1;
            // A set that gets its seats not again ends no second time.
            let ends_again = before.is_some_and(|before| before.state == SetState::Retaking)
                && now.state == SetState::Expired;
            if before.map(|before| before.state) != Some(now.state) && !ends_again {
                came.to.push(Turn { state: now.state, hold: now.hold });
            }
            came.first_end_at_ms = [came.first_end_at_ms, now.expires_at_ms].into_iter().flatten().min();
        }
    }
    let changed = sets.iter().filter(|(_, touched)| touched.now != touched.loaded);
    let changes: Vec<SetChange<'_>> = changed
        .filter_map(|(request, touched)| {
            let before = touched.loaded.as_ref().map(|loaded| loaded.version);
            Some(SetChange { request: request.as_str(), before, after: touched.now.as_ref()? })
        })
        .collect();
    match changes.is_empty() {
        true => Ok(Saved::Done),
        false => store.save_sets(&changes),
    }
}
