//! The tables as Diesel sees them; `migrations/` creates them. Columns that the database fills and no query reads are left
//! out.
#![allow(missing_docs, reason = "the migrations say what each table and column is")]

diesel::table! {
    sales (sale_id) {
        sale_id -> Binary,
        product_id -> Varchar,
        title -> Varchar,
        price_cents -> BigInt,
        currency -> Varchar,
        granted -> BigInt,
        stock -> BigInt,
        per_user_limit -> Nullable<Unsigned<Integer>>,
        token_required -> Bool,
        waiting_room -> Bool,
        pay_within_s -> Nullable<Unsigned<Integer>>,
        pay_grace_s -> Unsigned<Integer>,
        limit_returns -> Bool,
        starts_at -> Datetime,
        ends_at -> Datetime,
        status -> Varchar,
        epoch -> Unsigned<Integer>,
        hidden -> Bool,
        version -> Unsigned<Integer>,
        closings -> Unsigned<Integer>,
        created_at -> Datetime,
        drop_id -> Nullable<Binary>,
        needs -> Nullable<Varchar>,
        limit_by -> Varchar,
        challenge -> Nullable<Varchar>,
        line_kind -> Nullable<Varchar>,
        by_line -> Bool,
    }
}

diesel::table! {
    drops (drop_id) {
        drop_id -> Binary,
        title -> Varchar,
        per_user_limit -> Nullable<Unsigned<Integer>>,
        sale_ids -> Binary,
        version -> Unsigned<Integer>,
        created_at -> Datetime,
    }
}

diesel::table! {
    orders (request_id) {
        request_id -> Unsigned<BigInt>,
        sale_id -> Binary,
        user_id -> Binary,
        one_per_user_id -> Nullable<Binary>,
        quantity -> Unsigned<Integer>,
        amount_cents -> BigInt,
        source -> Varchar,
        accepted_at -> Datetime,
        created_at -> Datetime,
        cancelled_at -> Nullable<Datetime>,
        cancelled_by -> Nullable<Varchar>,
        cancel_reason -> Nullable<Varchar>,
        state -> Nullable<Varchar>,
        state_at -> Nullable<Datetime>,
        pay_by -> Nullable<Datetime>,
        expire_at -> Nullable<Datetime>,
        paying_at -> Nullable<Datetime>,
        limit_returned -> Bool,
        version -> Unsigned<Integer>,
        person -> Nullable<Binary>,
    }
}

diesel::table! {
    purchases (sale_id, user_id) {
        sale_id -> Binary,
        user_id -> Binary,
        quantity -> Unsigned<BigInt>,
    }
}

diesel::table! {
    request_outcome (request_id) {
        request_id -> Unsigned<BigInt>,
        kind -> Varchar,
        reason -> Nullable<Varchar>,
        sale_id -> Binary,
        shard -> Unsigned<SmallInt>,
        epoch -> Unsigned<Integer>,
        number -> Nullable<Unsigned<BigInt>>,
        payload_hash -> Binary,
        created_at -> Datetime,
    }
}

diesel::table! {
    outcome_event (request_id) {
        request_id -> Unsigned<BigInt>,
        event_key -> Varchar,
        body -> Binary,
    }
}

diesel::table! {
    failed_request (request_id) {
        request_id -> Unsigned<BigInt>,
        sale_id -> Binary,
        user_id -> Binary,
        quantity -> Unsigned<Integer>,
        source -> Varchar,
        reason -> Varchar,
        detail -> Varchar,
        payload -> Binary,
        status -> Varchar,
        created_at -> Datetime,
        resolved_at -> Nullable<Datetime>,
        resolved_by -> Nullable<Varchar>,
        reclaimed_by -> Nullable<Binary>,
        person -> Nullable<Binary>,
    }
}

diesel::table! {
    stock_flow (flow_id) {
        flow_id -> Unsigned<BigInt>,
        sale_id -> Binary,
        delta -> BigInt,
        kind -> Varchar,
        orders_count -> Unsigned<Integer>,
        #[sql_name = "ref"]
        reference -> Binary,
        created_at -> Datetime,
    }
}

diesel::table! {
    stock_grants (sale_id, grant_id) {
        sale_id -> Binary,
        grant_id -> Binary,
        kind -> Varchar,
        quantity -> BigInt,
        epoch -> Unsigned<Integer>,
        created_at -> Datetime,
        applied_at -> Nullable<Datetime>,
        buyers -> Nullable<Mediumtext>,
    }
}

diesel::table! {
    stock_withdrawals (sale_id, name) {
        sale_id -> Binary,
        name -> Binary,
        asked -> BigInt,
        moves_to -> Nullable<Binary>,
        taken -> Nullable<BigInt>,
        created_at -> Datetime,
        ended_at -> Nullable<Datetime>,
    }
}

diesel::table! {
    payments (payment_id) {
        payment_id -> Binary,
        request_id -> Unsigned<BigInt>,
        sale_id -> Nullable<Binary>,
        amount_cents -> BigInt,
        currency -> Varchar,
        state -> Varchar,
        reason -> Nullable<Varchar>,
        created_at -> Datetime,
        state_at -> Datetime,
    }
}

diesel::table! {
    order_events (event_id) {
        event_id -> Unsigned<BigInt>,
        request_id -> Unsigned<BigInt>,
        event_key -> Varchar,
        events_count -> Unsigned<SmallInt>,
        body -> Binary,
    }
}

diesel::table! {
    webhook_subscriptions (webhook) {
        webhook -> Binary,
        events -> Varchar,
        disabled_at -> Nullable<Datetime>,
    }
}

diesel::table! {
    webhook_deliveries (delivery_id) {
        delivery_id -> Unsigned<BigInt>,
        webhook -> Binary,
        request_id -> Unsigned<BigInt>,
        event_key -> Varchar,
        body -> Binary,
        state -> Varchar,
        attempts -> Unsigned<SmallInt>,
        next_at -> Datetime,
        problem -> Nullable<Varchar>,
        created_at -> Datetime,
    }
}

diesel::table! {
    sale_epochs (sale_id, epoch, shard) {
        sale_id -> Binary,
        epoch -> Unsigned<Integer>,
        shard -> Unsigned<SmallInt>,
        number -> Unsigned<BigInt>,
        accepted -> Nullable<BigInt>,
    }
}

diesel::table! {
    closed_findings (closure_id) {
        closure_id -> Unsigned<BigInt>,
        sale_id -> Binary,
        code -> Varchar,
        epoch -> Nullable<Unsigned<Integer>>,
        shard -> Nullable<Unsigned<SmallInt>>,
        first_number -> Nullable<Unsigned<BigInt>>,
        last_number -> Nullable<Unsigned<BigInt>>,
        units -> BigInt,
        reason -> Varchar,
        closed_by -> Varchar,
        closed_at -> Datetime,
        reclaimed_by -> Nullable<Binary>,
        person -> Nullable<Binary>,
    }
}

diesel::table! {
    archived_sales (sale_id) {
        sale_id -> Binary,
        title -> Varchar,
        granted -> BigInt,
        stock -> BigInt,
        ordered -> BigInt,
        orders_count -> Unsigned<BigInt>,
        outcomes_count -> Unsigned<BigInt>,
        manifest -> Varchar,
        archived_by -> Varchar,
        archived_at -> Datetime,
    }
}

diesel::table! {
    audit_runs (run_id) {
        run_id -> Unsigned<BigInt>,
        sale_id -> Nullable<Binary>,
        started_at -> Datetime,
        ended_at -> Datetime,
        consistent -> Bool,
        examined_count -> Unsigned<BigInt>,
        sheet -> Text,
    }
}

diesel::table! {
    audit_findings (finding_id) {
        finding_id -> Unsigned<BigInt>,
        run_id -> Unsigned<BigInt>,
        sale_id -> Nullable<Binary>,
        request_id -> Nullable<Unsigned<BigInt>>,
        code -> Varchar,
        detail -> Varchar,
        created_at -> Datetime,
    }
}

pub use super::acts_schema::operator_acts;

diesel::allow_tables_to_appear_in_same_query!(audit_runs, audit_findings);
diesel::allow_tables_to_appear_in_same_query!(sales, archived_sales);
diesel::allow_tables_to_appear_in_same_query!(sales, stock_grants);
diesel::allow_tables_to_appear_in_same_query!(orders, request_outcome, failed_request);
diesel::allow_tables_to_appear_in_same_query!(sales, request_outcome);
