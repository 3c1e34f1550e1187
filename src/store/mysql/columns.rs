//! Columns that Diesel reads as values of the domain: ids, codes, and times as Unix milliseconds.
//!
//! A value that this build does not know is an error of the whole row, never a default.

use super::codes::{
    FailureStatus, GrantKind, Reporter, read_request_id, read_sale_id, read_user_id, unix_ms, unreadable,
};
use crate::domain::ids::{RequestId, SaleId, UserId};
use crate::domain::order_life::OrderState;
use crate::domain::payment::PaymentState;
use chrono::NaiveDateTime;
use diesel::deserialize::{FromSql, Queryable, Result};
use diesel::mysql::{Mysql, MysqlValue};
use diesel::sql_types::{BigInt, Binary, Datetime, Nullable, Text, Unsigned};

/// A time, for a field with `#[diesel(deserialize_as = UnixMs)]`.
pub struct UnixMs(i64);

impl From<UnixMs> for i64 {
    fn from(time: UnixMs) -> Self {
        time.0
    }
}

/// A time that may be missing, for a field with `#[diesel(deserialize_as = MaybeUnixMs)]`.
pub struct MaybeUnixMs(Option<i64>);

impl From<MaybeUnixMs> for Option<i64> {
    fn from(time: MaybeUnixMs) -> Self {
        time.0
    }
}

/// ASCII that is stored as bytes, for a field with `#[diesel(deserialize_as = ByteText)]`.
pub struct ByteText(String);

impl From<ByteText> for String {
    fn from(text: ByteText) -> Self {
        text.0
    }
}

/// A column of type `$sql` is read as `$stored`, which becomes the value.
macro_rules! column {
    ($value:ty, $sql:ty, |$read:ident: $stored:ty| $become:expr) => {
        impl FromSql<$sql, Mysql> for $value {
            fn from_sql(bytes: MysqlValue<'_>) -> Result<Self> {
                let $read = <$stored as FromSql<$sql, Mysql>>::from_sql(bytes)?;
                Ok($become)
            }
        }

        impl Queryable<$sql, Mysql> for $value {
            type Row = Self;

            fn build(value: Self) -> Result<Self> {
                Ok(value)
            }
        }
    };
}

column!(SaleId, Binary, |bytes: Vec<u8>| read_sale_id(&bytes)?);
column!(UserId, Binary, |bytes: Vec<u8>| read_user_id(&bytes)?);
column!(RequestId, Unsigned<BigInt>, |number: u64| read_request_id(number)?);
column!(UnixMs, Datetime, |time: NaiveDateTime| Self(unix_ms(time)));
column!(ByteText, Binary, |bytes: Vec<u8>| Self(String::from_utf8(bytes)?));
column!(Reporter, Text, |code: String| {
    Self::from_code(&code).ok_or_else(|| unreadable("failed_request.source", &code))?
});
column!(FailureStatus, Text, |code: String| {
    Self::from_code(&code).ok_or_else(|| unreadable("failed_request.status", &code))?
});
column!(GrantKind, Text, |code: String| {
    Self::from_code(&code).ok_or_else(|| unreadable("stock_grants.kind", &code))?
});

/// A state of an order that may be missing, for a field with `#[diesel(deserialize_as = MaybeOrderState)]`.
pub struct MaybeOrderState(Option<OrderState>);

impl From<MaybeOrderState> for Option<OrderState> {
    fn from(state: MaybeOrderState) -> Self {
        state.0
    }
}

column!(PaymentState, Text, |code: String| {
    Self::from_code(&code).ok_or_else(|| unreadable("payments.state", &code))?
});

impl FromSql<Nullable<Text>, Mysql> for MaybeOrderState {
    fn from_sql(bytes: MysqlValue<'_>) -> Result<Self> {
        let code = <String as FromSql<Text, Mysql>>::from_sql(bytes)?;
        let state = OrderState::from_code(&code).ok_or_else(|| unreadable("orders.state", &code))?;
        Ok(Self(Some(state)))
    }

    fn from_nullable_sql(bytes: Option<MysqlValue<'_>>) -> Result<Self> {
        bytes.map_or(Ok(Self(None)), Self::from_sql)
    }
}

impl Queryable<Nullable<Text>, Mysql> for MaybeOrderState {
    type Row = Self;

    fn build(value: Self) -> Result<Self> {
        Ok(value)
    }
}

impl FromSql<Nullable<Datetime>, Mysql> for MaybeUnixMs {
    fn from_sql(bytes: MysqlValue<'_>) -> Result<Self> {
        UnixMs::from_sql(bytes).map(|UnixMs(time)| Self(Some(time)))
    }

    fn from_nullable_sql(bytes: Option<MysqlValue<'_>>) -> Result<Self> {
        bytes.map_or(Ok(Self(None)), Self::from_sql)
    }
}

impl Queryable<Nullable<Datetime>, Mysql> for MaybeUnixMs {
    type Row = Self;

    fn build(value: Self) -> Result<Self> {
        Ok(value)
    }
}
