//! Sets whose workshops were deleted. A line goes with its workshop; a set goes with the last of its lines, and its holder's
//! name with it if nothing else stands behind that.
//!
//! Nothing on a workshop's side says which sets had lines there, and no list is kept of it: after a deletion, and once after
//! the start, each home's sets are looked at, a page at a time. Whoever asks for a set earlier finds it gone as well.

use std::sync::Arc;

use tokio::time::sleep;

use super::command::{self, Step, Told};
use super::decide::{Change, Wrong};
use super::driver::Sets;
use crate::partition::Refusal;
use crate::reservations::command::Command;
use crate::reservations::types::{HolderName, RequestId};
use crate::store::sets::{SetRow, SetState};

/// Sets looked at in one go.
const PAGE: u32 = 256;

impl Sets {
    /// A workshop was deleted: sets that had lines there are looked at.
    pub fn a_workshop_is_gone(&self) {
        self.deletions().send_modify(|deletions| *deletions = deletions.wrapping_add(1));
    }

    /// Removes a partition's sets that are gone with their workshops, now and after every deletion.
    pub(super) async fn forget_what_is_gone(&self, partition: u32) {
        let (.., retry) = self.inner();
        let mut deletions = self.deletions().subscribe();
        loop {
            deletions.mark_unchanged();
            while self.look_at_all(partition).await.is_err() {
                sleep(retry).await;
            }
            if deletions.changed().await.is_err() {
                return;
            }
        }
    }

    async fn look_at_all(&self, partition: u32) -> Result<(), Refusal> {
        let (.., retry) = self.inner();
        let mut after: Arc<str> = Arc::from("");
        let mut on_their_way = Vec::new();
        loop {
            let page = self.page(partition, Arc::clone(&after)).await?;
            let is_last = page.len() < PAGE as usize;
            if let Some((last, _)) = page.last() {
                after = Arc::clone(last);
            }
            on_their_way.extend(self.forget_gone(page).await?);
            if is_last {
                break;
            }
        }
        // Their drivers may have met the workshop before it was deleted.
        while !on_their_way.is_empty() {
            sleep(retry).await;
            let mut seen = Vec::new();
            for id in on_their_way {
                let told = self.home(&RequestId::from(Arc::clone(&id)), Step::Look).await?;
                seen.extend(told.ok().map(|told| (id, told.set)));
            }
            on_their_way = self.forget_gone(seen).await?;
        }
        Ok(())
    }

    async fn page(&self, partition: u32, after: Arc<str>) -> Result<Vec<(Arc<str>, SetRow)>, Refusal> {
        let page = |reply| Command::Set(command::Command::Page { after, limit: PAGE, reply });
        self.workshops().chore(partition, page).await
    }

    /// Removes those of which no line is left; which are still on their way.
    async fn forget_gone(&self, seen: Vec<(Arc<str>, SetRow)>) -> Result<Vec<Arc<str>>, Refusal> {
        let (finished, on_their_way): (Vec<_>, Vec<_>) = seen.into_iter().partition(|(_, set)| set.finished);
        let lines = finished.iter().flat_map(|(_, set)| &set.lines);
        let lines: Vec<_> = lines.map(|line| (Arc::clone(&line.workshop), line.key)).collect();
        let mut there = self.workshops().are_there(&lines).await?.into_iter();
        for (id, set) in finished {
            let left = there.by_ref().take(set.lines.len()).filter(|is_there| *is_there).count();
            if left == 0 {
                let _told = self.home(&RequestId::from(id), Step::Forget { version: set.version }).await?;
            }
        }
        Ok(on_their_way.into_iter().map(|(id, _)| id).collect())
    }

    /// Which lines of a finished set are left, in order.
    async fn lines_left(&self, set: &SetRow) -> Result<Vec<bool>, Refusal> {
        let lines: Vec<_> = set.lines.iter().map(|line| (Arc::clone(&line.workshop), line.key)).collect();
        self.workshops().are_there(&lines).await
    }

    /// What its home has told of a set, unless it is gone with its workshops: whoever asks first has it removed.
    pub(super) async fn unless_gone(
        &self,
        request: &RequestId,
        told: Result<Box<Told>, Wrong>,
    ) -> Result<Result<Box<Told>, Wrong>, Refusal> {
        let Ok(told) = told else { return Ok(told) };
        if told.is_new || !told.set.finished || self.lines_left(&told.set).await?.contains(&true) {
            return Ok(Ok(told));
        }
        self.home(request, Step::Forget { version: told.set.version }).await
    }

    /// Why a set is not to be confirmed or held any longer, though it is held: a line of it is gone with its workshop. What
    /// is left of it is given up.
    pub(super) async fn lacks_a_line(
        &self,
        request: &RequestId,
        of: Option<&HolderName>,
    ) -> Result<Option<Wrong>, Refusal> {
        let Ok(told) = self.home(request, Step::Look).await? else { return Ok(None) };
        if of.is_some() && told.holder.as_ref() != of {
            return Ok(Some(Wrong::NotFound));
        }
        let told = self.finished(request, told).await;
        if !told.set.finished || !matches!(told.set.state, SetState::Held | SetState::Cancelled) {
            return Ok(None);
        }
        let left = self.lines_left(&told.set).await?;
        if !left.contains(&true) {
            let told = self.home(request, Step::Forget { version: told.set.version }).await?;
            return Ok(told.err());
        }
        if !left.contains(&false) {
            return Ok(None);
        }
        // Somebody may have confirmed it while the workshop was there: then it is.
        match self.home(request, Step::Change { change: Change::Release, of: None }).await? {
            Ok(told) if told.set.state == SetState::Cancelled => {
                self.finished(request, told).await;
                Ok(Some(Wrong::WorkshopGone))
            }
            _ => Ok(None),
        }
    }
}
