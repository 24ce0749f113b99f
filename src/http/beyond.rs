//! What of a request is beyond the settings of today.
//!
//! An operator may lower a limit. Whatever was allowed before was decided, and is answered as it was when it is asked again;
//! so a request beyond a limit is looked up all the same, and refused only if its id is new. What no setting could ever allow
//! is refused at once.

use super::problem::Problem;

/// Why a request is refused if its id is new; empty if it is within all limits.
#[derive(Debug, Default)]
pub(super) struct Beyond(Option<Problem>);

impl Beyond {
    /// What `today` allows, or else what was perhaps allowed before.
    ///
    /// # Errors
    /// That of today, if it was never allowed.
    pub(super) fn allow<T>(
        &mut self,
        today: Result<T, Problem>,
        ever: impl FnOnce() -> Option<T>,
    ) -> Result<T, Problem> {
        today.or_else(|problem| match ever() {
            Some(allowed) => {
                self.0.get_or_insert(problem);
                Ok(allowed)
            }
            None => Err(problem),
        })
    }

    /// Whether there is anything.
    pub(super) fn is_any(&self) -> bool {
        self.0.is_some()
    }

    /// The refusal.
    pub(super) fn problem(self, otherwise: impl FnOnce() -> Problem) -> Problem {
        self.0.unwrap_or_else(otherwise)
    }
}
