//! The record of what operators did, as Diesel sees it; `migrations/` creates it.
#![allow(missing_docs, reason = "the migrations say what each table and column is")]

diesel::table! {
    operator_acts (act_id) {
        act_id -> Unsigned<BigInt>,
        at -> Datetime,
        actor_kind -> Varchar,
        actor_id -> Varchar,
        actor_name -> Varchar,
        roles -> Varchar,
        auth_method -> Varchar,
        ip -> Nullable<Varchar>,
        action -> Varchar,
        target_type -> Varchar,
        target_id -> Varchar,
        sale_id -> Nullable<Binary>,
        outcome -> Varchar,
        code -> Nullable<Varchar>,
        reason -> Nullable<Varchar>,
        before_json -> Nullable<Mediumtext>,
        after_json -> Nullable<Mediumtext>,
        request_id -> Nullable<Varchar>,
    }
}
