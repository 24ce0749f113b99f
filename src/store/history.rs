//! What a history is: the minutes in which an item's total changed, each with the total that it began with.
//!
//! Nothing else is known of a minute. It ends where the item's next one begins, with that one's opening, or with
//! the total now. So it is written once, at its first change; writing it a second time changes nothing, and a
//! minute in which nothing happened is not there at all. Hours and days are read from minutes. Everything here is a
//! pure function.

use std::ops::Range;

/// How long a bucket is. Buckets begin at whole multiples of that since 1970: at whole minutes, hours and days, UTC.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// 60,000 ms.
    Minute,
    /// 3,600,000 ms.
    Hour,
    /// 86,400,000 ms.
    Day,
}

impl Step {
    /// All of them, the shortest first.
    pub const ALL: [Self; 3] = [Self::Minute, Self::Hour, Self::Day];

    /// As questions and answers have it.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Minute => "minute",
            Self::Hour => "hour",
            Self::Day => "day",
        }
    }

    /// The step of a word.
    #[must_use]
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|step| step.word() == word)
    }

    /// Its length in ms.
    #[must_use]
    pub fn ms(self) -> i64 {
        match self {
            Self::Minute => 60_000,
            Self::Hour => 3_600_000,
            Self::Day => 86_400_000,
        }
    }

    /// The number of the bucket that a time lies in: whole steps since 1970.
    #[must_use]
    pub fn bucket(self, at_ms: i64) -> i64 {
        at_ms.div_euclid(self.ms())
    }

    /// When a bucket begins, in ms since 1970.
    #[must_use]
    pub fn begins_ms(self, bucket: i64) -> i64 {
        bucket.saturating_mul(self.ms())
    }

    /// Its length in minutes.
    #[must_use]
    pub fn minutes(self) -> i64 {
        self.ms() / Self::Minute.ms()
    }

    /// Buckets that an answer has where nothing else is asked for.
    #[must_use]
    pub fn usual_buckets(self) -> i64 {
        match self {
            Self::Minute => 60,
            Self::Hour => 24,
            Self::Day => 30,
        }
    }
}

/// How far back gains are ranked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Window {
    /// The minute that has begun and the 60 before it.
    Hour,
    /// The hour that has begun and the 24 before it.
    Day,
    /// The hour that has begun and the 168 before it.
    Week,
}

impl Window {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Hour, Self::Day, Self::Week];

    /// As questions and answers have it.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Hour => "1h",
            Self::Day => "24h",
            Self::Week => "7d",
        }
    }

    /// The window of a word.
    #[must_use]
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|window| window.word() == word)
    }

    /// The buckets that it moves on by.
    #[must_use]
    pub fn step(self) -> Step {
        match self {
            Self::Hour => Step::Minute,
            Self::Day | Self::Week => Step::Hour,
        }
    }

    /// The first minute that counts at a time.
    #[must_use]
    pub fn first(self, now_ms: i64) -> i64 {
        let whole = match self {
            Self::Hour => 60,
            Self::Day => 24,
            Self::Week => 168,
        };
        (self.step().bucket(now_ms) - whole) * self.step().minutes()
    }

    /// As it is stored: 1, 2, 3.
    #[must_use]
    pub fn code(self) -> i64 {
        match self {
            Self::Hour => 1,
            Self::Day => 2,
            Self::Week => 3,
        }
    }
}

/// How many buckets of each step are kept at least, the one that has begun among them: no fewer than a window needs. And
/// how many items are ranked in each window.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Kept {
    /// `rollup.history_minutes`
    pub minutes: u32,
    /// `rollup.history_hours`
    pub hours: u32,
    /// `rollup.history_days`
    pub days: u32,
    /// `rollup.trending_items`
    pub ranked: u32,
}

impl Kept {
    /// The first bucket that is kept at a time.
    #[must_use]
    pub fn first(&self, step: Step, now_ms: i64) -> i64 {
        let kept = match step {
            Step::Minute => self.minutes,
            Step::Hour => self.hours,
            Step::Day => self.days,
        };
        step.bucket(now_ms) + 1 - i64::from(kept)
    }
}

/// A total that is not what it was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Change<'a> {
    /// Of which item.
    pub item: &'a str,
    /// What it was.
    pub before: i64,
    /// What it is.
    pub total: i64,
}

/// Totals that a run changed.
#[derive(Debug, Clone, Copy, Default)]
pub struct ChangedTotals<'a> {
    /// When, in ms since 1970.
    pub at_ms: i64,
    /// Which.
    pub items: &'a [Change<'a>],
    /// How many items are ranked in each window.
    pub ranked: u32,
}

/// A bucket as it is answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bucket {
    /// When it begins, in ms since 1970.
    pub at_ms: i64,
    /// The total at its end less the total at its beginning.
    pub gained: i64,
    /// The total at its end; now, if it has not ended.
    pub total: i64,
}

/// What is stored of an item's history.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Openings {
    /// Minutes with a change and the totals that they began with, in order; where no minutes are known any more, the
    /// hour's first minute, or the day's. After those that were asked about comes the next one there is, if there is one.
    pub openings: Vec<(i64, i64)>,
    /// The total now.
    pub total: i64,
}

/// An item in a ranking.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ranked {
    /// Which.
    pub item: String,
    /// What it gained in the window.
    pub gained: i64,
    /// Its total.
    pub total: i64,
}

/// A ranking by gains.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Gains {
    /// The first first.
    pub top: Vec<Ranked>,
    /// The first minute that counts for any item.
    pub first: Option<i64>,
    /// No item that has no place has gained more than this.
    pub missed: i64,
}

/// What an item gained in a window, as its openings in it say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Standing {
    /// The minute of its first change.
    pub first: i64,
    /// The total then.
    pub base: i64,
    /// The lowest opening. The total less this is the most that it will have gained, however the window moves on, as long
    /// as it does not change.
    pub lowest: i64,
}

impl Standing {
    /// From the openings of all minutes of a window with a change, in order; `None` without any.
    #[must_use]
    pub fn of(openings: impl IntoIterator<Item = (i64, i64)>) -> Option<Self> {
        let add = |standing: Option<Self>, (minute, opening): (i64, i64)| match standing {
            None => Some(Self { first: minute, base: opening, lowest: opening }),
            Some(standing) => Some(Self { lowest: standing.lowest.min(opening), ..standing }),
        };
        openings.into_iter().fold(None, add)
    }
}

/// The minutes of an hour with a change in them, as bytes: of each its number from 0 to 59 and its opening, as the
/// difference to the hour's.
pub fn pack(minute: u8, opening: i64, of_hour: i64, packed: &mut Vec<u8>) {
    packed.push(minute);
    let difference = opening.wrapping_sub(of_hour);
    // Small ones of either sign are short: the sign goes last.
    let mut rest = ((difference << 1) ^ (difference >> 63)).cast_unsigned();
    loop {
        let [low, ..] = rest.to_le_bytes();
        rest >>= 7;
        if rest == 0 {
            return packed.push(low);
        }
        packed.push(low | 0x80);
    }
}

/// What [`pack`] has packed; `None` if something else did.
#[must_use]
pub fn unpack(packed: &[u8], of_hour: i64) -> Option<Vec<(u8, i64)>> {
    let mut bytes = packed.iter().copied();
    let mut minutes = Vec::new();
    while let Some(minute) = bytes.next() {
        let (mut value, mut shift) = (0_u64, 0);
        loop {
            let byte = bytes.next()?;
            value |= u64::from(byte & 0x7f).checked_shl(shift)?;
            shift += 7;
            if byte < 0x80 {
                break;
            }
        }
        let difference = (value >> 1).cast_signed() ^ -((value & 1).cast_signed());
        if minute >= 60 || minutes.last().is_some_and(|(last, _)| *last >= minute) {
            return None;
        }
        minutes.push((minute, of_hour.wrapping_add(difference)));
    }
    Some(minutes)
}

/// Which buckets an answer shows: those that have some of the time from `from_ms` to before `to_ms` in them, none
/// before `first` (which is not kept) and none that has not begun at `now_ms`.
#[must_use]
pub fn shown(step: Step, from_ms: Option<i64>, to_ms: Option<i64>, first: i64, now_ms: i64) -> Range<i64> {
    let begun = step.bucket(now_ms) + 1;
    let end = to_ms.map_or(begun, |to_ms| step.bucket(to_ms.saturating_sub(1)) + 1).min(begun);
    let start = from_ms.map_or(end - step.usual_buckets(), |from_ms| step.bucket(from_ms));
    let end = end.max(0);
    start.max(first).max(0).min(end)..end
}

/// Every bucket of a range, those without a change too.
#[must_use]
pub fn fill(step: Step, buckets: Range<i64>, stored: &Openings) -> Vec<Bucket> {
    // Of the minutes in a bucket the first one begins it.
    let mut openings: Vec<(i64, i64)> = stored
        .openings
        .iter()
        .map(|(minute, opening)| (minute.div_euclid(step.minutes()), *opening))
        .collect();
    openings.dedup_by_key(|(bucket, _)| *bucket);
    let mut openings = openings.iter().peekable();
    // Until the next change it is what that one begins with; if there is none, what it is now.
    let mut total = openings.peek().map_or(stored.total, |(_, opening)| *opening);
    let bucket = |bucket| {
        let before = total;
        if openings.next_if(|(changed, _)| *changed == bucket).is_some() {
            total = openings.peek().map_or(stored.total, |(_, opening)| *opening);
        }
        Bucket { at_ms: step.begins_ms(bucket), gained: total.saturating_sub(before), total }
    };
    buckets.map(bucket).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn buckets_begin_at_whole_steps_of_utc() {
        // 2026-11-30T14:32:19.007Z
        let at_ms = 1_796_049_139_007;
        let begins = Step::ALL.map(|step| step.begins_ms(step.bucket(at_ms)));
        assert_eq!(begins, [1_796_049_120_000, 1_796_047_200_000, 1_795_996_800_000]);
        for step in Step::ALL {
            let begins_ms = step.begins_ms(step.bucket(at_ms));
            assert_eq!(step.bucket(begins_ms - 1) + 1, step.bucket(begins_ms));
            assert_eq!(Step::parse(step.word()), Some(step));
            assert_eq!(step.bucket(-1), -1, "also before 1970");
        }
    }

    #[test]
    fn what_is_kept_is_enough_for_every_window() {
        let least = Kept { minutes: 120, hours: 192, days: 1, ranked: 0 };
        for now_ms in [0, 59_999, 60_000, 1_796_049_139_007] {
            for window in Window::ALL {
                let step = window.step();
                assert!(least.first(step, now_ms) * step.minutes() <= window.first(now_ms), "{window:?}");
            }
            assert_eq!(least.first(Step::Day, now_ms), Step::Day.bucket(now_ms), "the one that has begun");
        }
    }

    #[test]
    fn an_answer_shows_what_was_asked_for_and_is_there() {
        let now_ms = 1_000 * 60_000 + 30_000;
        let of = |from, to, first| shown(Step::Minute, from, to, first, now_ms);
        assert_eq!(of(None, None, 0), 941..1001, "the last hour, with the minute that has begun");
        assert_eq!(of(Some(60_000), Some(180_000), 0), 1..3, "whole ones");
        assert_eq!(of(Some(60_001), Some(180_001), 0), 1..4, "and those in part");
        assert_eq!(of(Some(0), None, 990), 990..1001, "none that is not kept");
        assert_eq!(of(None, Some(i64::MAX), 0), 941..1001, "none of the future");
        assert!(of(Some(2_000 * 60_000), None, 0).is_empty());
        assert!(of(None, Some(500 * 60_000), 990).is_empty());
        assert_eq!(shown(Step::Day, None, None, -400, 0), 0..1, "none before 1970");
    }

    /// What happened, told as plainly as can be.
    fn naive(step: Step, changes: &[(i64, i64)], buckets: Range<i64>) -> Vec<Bucket> {
        let up_to = |end: i64| {
            let before = changes.iter().filter(|(minute, _)| *minute < end * step.minutes());
            before.map(|(_, by)| by).sum::<i64>()
        };
        buckets
            .map(|bucket| {
                let (before, total) = (up_to(bucket), up_to(bucket + 1));
                Bucket { at_ms: bucket * step.ms(), gained: total - before, total }
            })
            .collect()
    }

    #[test]
    fn what_is_packed_elsewhere_is_refused() {
        for packed in [&[0][..], &[0, 0x80], &[60, 0], &[5, 0, 5, 0], &[5, 0, 4, 0], &[255; 40]] {
            assert_eq!(unpack(packed, 0), None, "{packed:?}");
        }
    }

    proptest! {
        #[test]
        fn what_is_packed_is_unpacked(
            of_hour in any::<i64>(),
            minutes in prop::collection::btree_map(0_u8..60, prop_oneof![any::<i64>(), -300_i64..300], 0..60),
        ) {
            let minutes: Vec<(u8, i64)> = minutes.into_iter().collect();
            let mut packed = Vec::new();
            minutes.iter().for_each(|(minute, opening)| pack(*minute, *opening, of_hour, &mut packed));
            prop_assert_eq!(unpack(&packed, of_hour), Some(minutes));
        }

        #[test]
        fn a_standing_tells_what_can_still_be_gained(
            openings in prop::collection::btree_map(0_i64..50, -9_i64..9, 0..9),
            total in -9_i64..9,
        ) {
            let standing = |first: i64| Standing::of(openings.range(first..).map(|(at, opening)| (*at, *opening)));
            let Some(begun) = standing(0) else { return Ok(()) };
            let ever = (0..50).filter_map(standing).map(|later| total - later.base).max();
            prop_assert_eq!(ever, Some(total - begun.lowest));
        }

        #[test]
        fn openings_tell_what_happened(
            mut changes in prop::collection::vec((0_i64..4_000, -5_i64..6), 0..60),
            step in prop::sample::select(&Step::ALL[..]),
            start in 0_i64..45,
            length in 0_i64..20,
            pruned in 0_i64..45,
        ) {
            changes.sort_by_key(|(minute, _)| *minute);
            let mut stored = Openings::default();
            for (minute, by) in &changes {
                if stored.openings.last().is_none_or(|(last, _)| last < minute) {
                    stored.openings.push((*minute, stored.total));
                }
                stored.total += by;
            }
            // What is too old is gone, and the rest says the same.
            let start = start.max(pruned);
            let end = start + length;
            let next = stored.openings.iter().position(|(minute, _)| *minute >= end * step.minutes());
            stored.openings.truncate(next.map_or(usize::MAX, |next| next + 1));
            stored.openings.retain(|(minute, _)| *minute >= start * step.minutes());
            prop_assert_eq!(fill(step, start..end, &stored), naive(step, &changes, start..end));
        }
    }
}
