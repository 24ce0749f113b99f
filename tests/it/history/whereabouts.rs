//! Where something with a life may be by now, as its caller knows it: a request for seats, or a set of them.

use std::fmt;

use headcount::store::bookings::State;

use crate::client::Answer;

/// What is asked of it once it has had its first answer.
pub trait Asked: Copy + fmt::Debug {
    /// Where it leads to from a state.
    fn of(self, state: State) -> State;

    /// The states from which the answer follows, and the state after it.
    fn told(self, answer: &Answer) -> Option<(&'static [State], Option<State>)>;
}

/// See the module.
pub trait Whereabouts: fmt::Display {
    type Change: Asked;

    /// One state if the last word on it was an answer; more if something was asked since that was not answered.
    fn states(&self) -> &[State];

    /// It is in one of these.
    fn is_in(&mut self, states: Vec<State>);

    /// Its states, and what happens to it without its caller.
    fn may_be(&self) -> Vec<State>;

    /// Notes an answer to a change; what is wrong with it, if anything.
    fn heard_of(&mut self, change: Self::Change, answer: &Answer) -> Vec<String> {
        let Some((from, to)) = change.told(answer) else {
            return vec![format!("{self}: no answer to {change:?}: {answer:?}")];
        };
        let before: Vec<State> = self.may_be().into_iter().filter(|state| from.contains(state)).collect();
        let wrong = match before.is_empty() {
            true => vec![format!("{self}: {change:?} in {:?} was answered {}", self.states(), answer.text)],
            false => Vec::new(),
        };
        self.is_in(to.map_or(before, |to| vec![to]));
        wrong
    }

    /// A change was asked for, and perhaps done.
    fn perhaps(&mut self, change: Self::Change) {
        let after: Vec<State> = self.may_be().into_iter().map(|state| change.of(state)).collect();
        self.is_in([self.states(), &after].concat());
    }

    /// Takes over where it is; what contradicts where it may be.
    fn found(&mut self, state: State) -> Option<String> {
        let wrong = !self.may_be().contains(&state);
        let wrong = wrong.then(|| format!("{self}: was {:?}, is {state:?}", self.states()));
        self.is_in(vec![state]);
        wrong
    }

    /// Where it is, once that is known.
    fn state(&self) -> Option<State> {
        match self.states() {
            [state] => Some(*state),
            _ => None,
        }
    }
}
