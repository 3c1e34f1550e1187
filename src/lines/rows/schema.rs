//! The columns of `line_entries` that statements are made of.
#![allow(missing_docs, reason = "the migration says what each column is")]

diesel::table! {
    line_entries (sale_id, entry_id) {
        sale_id -> Binary,
        entry_id -> Unsigned<BigInt>,
        user_id -> Binary,
        person -> Nullable<Binary>,
        limit_key -> Binary,
        quantity -> Unsigned<Integer>,
        entry_rank -> Nullable<Unsigned<Integer>>,
        state -> Varchar,
        listed -> Bool,
        request_id -> Nullable<Unsigned<BigInt>>,
        lapse_reason -> Nullable<Varchar>,
        entered_at -> Datetime,
        state_at -> Datetime,
    }
}
