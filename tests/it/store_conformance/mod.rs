//! What every store must do, whatever it is made of. A store is added with one line below.
//!
//! A case gets a way to open one place of its own, empty at first; opening it again finds what was
//! committed there.

mod bookings;
mod counters;
mod likers;
mod likes;
mod people;
mod reservations;
mod rooms;
mod sets;
mod summary;
mod transactions;

use headcount::config::Sqlite;
use headcount::store::sqlite::summary::SqliteSummary;
use headcount::store::sqlite::{Identity, SqliteStore};
use tempfile::TempDir;

/// A module of tests, each running one case on a new place.
macro_rules! conforms {
    ($store:ident, $new_place:expr, $part:ident: $($case:ident),+ $(,)?) => {
        mod $store {
            $(#[test] fn $case() { super::$part::$case(&$new_place()); })+
        }
    };
}

macro_rules! store_conforms {
    ($($store:ident: $new_place:expr),+ $(,)?) => {
        $(mod $store {
            use super::{bookings, counters, likers, likes, people, reservations, rooms, sets, transactions};
            conforms!(in_transactions, $new_place, transactions:
                what_is_committed_is_there_after_reopening, what_is_rolled_back_is_not,
                a_dropped_store_leaves_no_open_transaction, a_checkpoint_loses_nothing,
                rolling_back_nothing_is_no_error, a_commit_says_whether_it_awaits_a_sync,
                an_open_transaction_says_whether_it_has_changed_anything);
            conforms!(for_likes, $new_place, likes:
                an_item_has_one_key_from_its_creation, memberships_come_and_go, counters_are_saved_whole,
                what_is_rolled_back_leaves_every_row_as_it_was,
                claiming_adds_what_is_absent_and_says_what_was_there,
                a_row_that_changed_meanwhile_is_a_conflict, a_counter_that_changed_meanwhile_is_a_conflict,
                versions_are_a_shards_own, changes_come_in_order_a_page_at_a_time,
                a_deleted_item_is_gone_and_its_key_never_comes_back, a_version_survives_its_counters,
                a_sweep_removes_the_rows_of_the_dead_alone, negative_members_are_refused);
            conforms!(for_counters, $new_place, counters:
                an_id_is_kept_as_decided, an_id_that_changed_meanwhile_is_a_conflict,
                ids_are_forgotten_oldest_first_a_chunk_at_a_time);
            conforms!(for_likers, $new_place, likers:
                a_user_s_likes_come_in_the_order_of_their_keys, without_an_index_nobody_knows_who_likes_an_item,
                a_walk_sees_every_membership_once, a_sample_lies_anywhere, a_ledger_adds_up_by_counter);
            conforms!(for_people, $new_place, people:
                a_forgetting_is_noted_until_it_ends, what_was_forgotten_adds_up,
                a_holder_s_name_goes_and_its_surrogate_stays, messages_lose_their_sender_a_few_at_a_time);
            conforms!(for_reservations, $new_place, reservations:
                a_workshop_is_created_once_and_found_by_name, answers_stand_in_the_order_of_the_question,
                an_attempt_is_kept_as_decided, a_workshop_that_changed_meanwhile_is_a_conflict,
                an_attempt_that_is_there_already_is_a_conflict, a_seat_too_many_is_refused);
            conforms!(for_sets, $new_place, sets:
                a_set_is_kept_as_decided, a_set_that_changed_meanwhile_is_a_conflict,
                sets_that_are_to_be_gone_on_with_are_found, a_line_of_a_set_is_one_and_has_no_end,
                a_holder_stays_as_long_as_a_set_names_it, a_set_that_is_removed_leaves_nothing);
            conforms!(for_bookings, $new_place, bookings:
                a_life_is_kept_as_saved,
                seats_are_due_after_one_time_and_up_to_another,
                holds_end_in_the_order_of_their_times,
                lines_whose_sets_have_ended_are_found,
                whoever_waits_longest_is_first_among_those_who_fit,
                a_holder_has_the_seats_that_it_has_now,
                a_name_has_one_surrogate,
                what_is_due_next_is_known_over_all_workshops,
                each_workshop_with_holds_has_its_turn,
                workshops_are_listed_by_name_a_page_at_a_time,
                requests_are_listed_by_id_as_they_are_at_a_time,
                a_log_is_read_in_order_from_anywhere,
                a_deleted_workshop_leaves_a_tombstone_and_nothing_else,
                tombstones_can_all_be_taken_away);
            conforms!(for_rooms, $new_place, rooms:
                a_room_is_created_once_and_found_by_name, messages_are_kept_as_they_were_said,
                a_room_that_changed_meanwhile_is_a_conflict, what_is_let_go_of_is_gone,
                a_purge_takes_what_is_old_and_rooms_that_keep_nothing);
        })+
    };
}

macro_rules! summary_conforms {
    ($($store:ident: $new_place:expr),+ $(,)?) => {
        $(mod $store {
            use super::summary;
            conforms!(for_totals, $new_place, summary:
                a_new_summary_has_nothing, rows_and_progress_are_stored_together,
                rows_are_absolute, a_shard_count_may_exceed_what_is_stored,
                a_deletion_is_noted_until_it_is_finished);
        })+
    };
}

store_conforms!(
    sqlite: crate::store_conformance::sqlite_place,
    sqlite_that_settles_at_once: crate::store_conformance::settling_place,
);
summary_conforms!(sqlite_summary: crate::store_conformance::sqlite_summary_place);

fn sqlite_place() -> impl Fn() -> SqliteStore {
    place(Sqlite::default())
}

/// Every change begins to move into its table with the next one.
fn settling_place() -> impl Fn() -> SqliteStore {
    place(Sqlite { pending_rows: 1, ..Sqlite::default() })
}

fn place(sqlite: Sqlite) -> impl Fn() -> SqliteStore {
    let directory = TempDir::new().unwrap();
    move || {
        let identity = Identity { data_id: "conformance".to_owned(), partition: 0 };
        SqliteStore::open(&directory.path().join("partition.db"), identity, sqlite.clone()).unwrap()
    }
}

fn sqlite_summary_place() -> impl Fn() -> SqliteSummary {
    let directory = TempDir::new().unwrap();
    move || {
        SqliteSummary::open(&directory.path().join("summary.db"), "conformance", &Sqlite::default()).unwrap()
    }
}
