//! What refuses a request before its seats are looked for: the sale's window, and a holder's share.

use super::desk::{Book, Desk};
use crate::store::bookings::{HolderKey, Reason};

impl<B: Book> Desk<'_, B> {
    /// Why nobody gets a seat at this time, if so.
    pub(super) fn outside_the_sale(&self) -> Option<Reason> {
        let rules = &self.workshop.rules;
        if rules.opens_at_ms.is_some_and(|opens| self.now_ms < opens) {
            return Some(Reason::SaleNotOpen);
        }
        rules.closes_at_ms.filter(|closes| self.now_ms >= *closes).map(|_| Reason::SaleClosed)
    }

    /// Whether so many seats more would be too many for their holder, who gives up `given_up` of those it has.
    pub(super) fn exceeds_share(
        &mut self,
        holder: Option<HolderKey>,
        seats: i64,
        given_up: i64,
    ) -> Result<bool, B::Error> {
        let (Some(most), Some(holder)) = (self.workshop.rules.max_seats_per_holder, holder) else {
            return Ok(false);
        };
        let has = self.book.seats_of_holder(holder, self.now_ms)?;
        Ok(has - given_up + seats > most)
    }

    /// Whether so many seats to wait for would be too many for their holder, with those it has and waits for: nobody
    /// fills a waiting list alone.
    pub(super) fn waits_for_its_share(
        &mut self,
        holder: Option<HolderKey>,
        seats: i64,
    ) -> Result<bool, B::Error> {
        match (self.workshop.rules.max_seats_per_holder, holder) {
            (Some(_), Some(holder)) if self.workshop.waiting > 0 => {
                let waits_for = self.book.seats_waited_for(holder)?;
                self.exceeds_share(Some(holder), seats + waits_for, 0)
            }
            _ => Ok(false),
        }
    }
}
