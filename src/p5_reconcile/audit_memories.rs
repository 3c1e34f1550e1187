//! What the last audit of each sale remembers for the next, for a bounded number of sales.
//!
//! A sale whose memory went is counted as a whole in its next audit. After a crash that is every sale, once.

use super::audit::AuditMemory;
use crate::domain::ids::SaleId;
use std::collections::HashMap;

/// Sales whose counts are remembered.
const SALES_MAX: usize = 10_000;

/// The memories, each of one sale.
#[derive(Debug)]
pub(super) struct AuditMemories {
    of: HashMap<SaleId, AuditMemory>,
    sales_max: usize,
}

impl Default for AuditMemories {
    fn default() -> Self {
        Self { of: HashMap::new(), sales_max: SALES_MAX }
    }
}

impl AuditMemories {
    /// Takes the memory of a sale out while it is used: after an error everything is counted again. Empty when there is none.
    pub(crate) fn take(&mut self, sale: &SaleId) -> AuditMemory {
        self.of.remove(sale).unwrap_or_default()
    }

    /// The memory of a sale, if there is one.
    pub(crate) fn get_mut(&mut self, sale: &SaleId) -> Option<&mut AuditMemory> {
        self.of.get_mut(sale)
    }

    /// Puts it back. When there is no room, one other sale's goes: with all of them, one sale too many would make every round count
    /// everything.
    pub(crate) fn put(&mut self, sale: &SaleId, memory: AuditMemory) {
        if self.of.len() >= self.sales_max
            && !self.of.contains_key(sale)
            && let Some(other) = self.of.keys().next().cloned()
        {
            self.of.remove(&other);
        }
        self.of.insert(sale.clone(), memory);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_sale_more_than_there_is_room_for_costs_one_memory() {
        let mut memories = AuditMemories { sales_max: 3, ..AuditMemories::default() };
        let sales: Vec<SaleId> = (0..4).map(|n| SaleId::parse(&format!("s{n}")).unwrap()).collect();
        for sale in &sales {
            memories.put(sale, AuditMemory::default());
        }
        assert!(memories.of.len() == 3 && memories.of.contains_key(&sales[3]));
        memories.put(&sales[3], AuditMemory::default());
        assert_eq!(memories.of.len(), 3, "a sale that is there needs no other's room");
        memories.take(&sales[3]);
        assert_eq!(memories.of.len(), 2);
    }
}
