//! The columns that the baselines write, as Diesel sees them; `migrations/` makes the tables.

diesel::table! {
    sales (sale_id) {
        sale_id -> Binary,
        stock -> BigInt,
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
    }
}
