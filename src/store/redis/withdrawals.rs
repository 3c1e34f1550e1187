//! Unsold units that leave a bucket: `lua/withdraw.lua`, a grant of less than nothing.
//!
//! Input: the name of a withdrawal. Output: what the shard gave to it. A crash between two shards leaves their records; a repeat reads
//! them.

use super::connection::{RedisFault, integer, text};
use super::sale_keys::SaleKeys;
use super::scripts::WITHDRAW;
use crate::domain::ids::SaleId;
use crate::trace_points::trace_point;
use fred::types::Value;

/// The result of a withdrawal from one shard.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Withdrawn {
    /// Units that the shard gave to it, now or before; 0: it had none left.
    Units(i64),
    /// The sale's keys are missing.
    KeysMissing,
    /// The sale is in another epoch.
    OtherEpoch,
    /// The sale is frozen; its rebuild sets the stock.
    Frozen,
    /// The shard has accepted less than the database knows of: it went back in time, and nothing was taken.
    Rewound,
}

impl SaleKeys {
    /// Takes up to `withdrawal.1` unsold units (0 or more) from one shard, once for each grant id `withdrawal.0`. `number` is the
    /// highest acceptance number that the database had of this epoch and shard before the call. Repeating is safe.
    pub async fn withdraw(
        &self,
        sale: &SaleId,
        (shard, epoch, number): (u16, u32, u64),
        withdrawal: (&str, i64),
    ) -> Result<Withdrawn, RedisFault> {
        let keys = vec![
            self.redis.keys.meta(shard, sale),
            self.redis.keys.stock(shard, sale),
            self.redis.keys.grants(shard, sale),
        ];
        let (units, number) = (Value::Integer(withdrawal.1.max(0)), text(number.to_string()));
        let args = vec![Value::Integer(epoch.into()), text(withdrawal.0), units, number];
        match integer(&self.redis.script_replicated(&WITHDRAW, keys, args).await?)? {
            units @ 0.. => {
                trace_point!(Granted {
                    sale: sale.as_str(),
                    shard: shard,
                    epoch: epoch,
                    grant: withdrawal.0,
                    units: -units,
                    verdict: 1
                });
                Ok(Withdrawn::Units(units))
            }
            -1 => Ok(Withdrawn::KeysMissing),
            -2 => Ok(Withdrawn::OtherEpoch),
            -3 => Ok(Withdrawn::Frozen),
            -4 => Ok(Withdrawn::Rewound),
            other => Err(RedisFault::Contract(format!("withdraw answered {other}"))),
        }
    }
}
