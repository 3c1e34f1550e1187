//! One audit under way, the grants: each of them by its name, because sums hide what was given twice behind what was not given
//! at all.
//!
//! The database's marks are read before Redis is counted, its grants after: so a grant that is given at this moment is neither.

use super::sheet::Sheet;
use super::{FindingKind, SaleAuditError};
use crate::domain::sale::SaleStatus;
use crate::store::mysql::grants::{self, Grant};
use std::collections::HashMap;

impl Sheet<'_, '_> {
    /// The grants that Redis was known to have before it is counted.
    pub(super) async fn read_marks(&mut self) -> Result<(), SaleAuditError> {
        let of_epoch = grants::of_epoch(&self.auditor.db, &self.sale.sale_id, self.sale.epoch).await?;
        self.marked = of_epoch.into_iter().filter(|grant| grant.applied_at_ms.is_some()).collect();
        Ok(())
    }

    /// Compares what Redis was given with what the database knows. Only where all shards could be counted.
    pub(super) async fn compare_grants(&mut self) -> Result<(), SaleAuditError> {
        if !self.audit.counted.bridged {
            return Ok(());
        }
        let mut given: HashMap<String, i64> = HashMap::new();
        for shard in 0..self.auditor.shards {
            let of_shard = self.auditor.redis.sale_keys.grants(&self.sale.sale_id, shard).await?;
            if of_shard.is_empty() {
                // A closed sale may leave Redis just now; of another one, lost keys are told already.
                let leaves = self.sale.status == SaleStatus::Closed;
                return if leaves { Err(SaleAuditError::Moved) } else { Ok(()) };
            }
            for (name, units) in of_shard {
                *given.entry(name).or_default() += units;
            }
        }
        let known = grants::of_epoch(&self.auditor.db, &self.sale.sale_id, self.sale.epoch).await?;
        if i64::try_from(known.len()).is_ok_and(|count| count >= grants::OF_EPOCH_MAX) {
            // Too many to have them all: their sum is compared.
            return Ok(());
        }
        for grant in std::mem::take(&mut self.marked) {
            let units = given.get(&grant.grant_id).copied();
            if units != Some(grant.quantity) {
                let has = units.map_or_else(|| "does not know it".to_owned(), |units| format!("has {units} of it"));
                self.tell(&grant, &format!("redis was given it by its mark, and {has}"));
            }
        }
        let known: HashMap<&str, i64> = known.iter().map(|grant| (grant.grant_id.as_str(), grant.quantity)).collect();
        for (name, units) in &given {
            let most = known.get(name.as_str()).copied().unwrap_or(0);
            if *units > most {
                let detail = format!(
                    "redis was given {units} units of grant {name}, the database knows of {most} in this epoch"
                );
                self.find(FindingKind::Unbalanced, None, detail);
            }
        }
        Ok(())
    }

    fn tell(&mut self, grant: &Grant, what: &str) {
        let detail = format!("grant {} of {} units: {what}", grant.grant_id, grant.quantity);
        self.find(FindingKind::Unbalanced, None, detail);
    }
}
