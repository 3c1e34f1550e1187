//! One moment of a sale with a payment step: the database, Redis, what two processes have in memory, and what the provider holds.
//!
//! What processes hold is stored with the order that it is about, so that orders can be sorted: their names do not matter.

use super::setup::OrdersSetup;
use seckill::domain::order_life::{OrderEvent, OrderState, OrderTransition};
use seckill::domain::payment::PaymentState;

/// Buyers at most, each with one request.
pub const BUYERS: usize = 3;
/// Payments of an order at most.
pub const PAYMENTS: usize = 2;
/// Processes that expire orders and give grants: the sweep, and a second one of it, the api or P5.
pub const PROCESSES: usize = 2;

/// How far the purchase is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Purchase {
    /// Not in this search.
    #[default]
    Absent,
    /// The buyer waits for a unit.
    Waits,
    /// Redis has sold him one; the order is on its way.
    Accepted,
    Ordered,
    /// The database had no unit for him.
    Failed,
}

/// The enforced deadline, by the clock of the database.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Due {
    #[default]
    Ahead,
    Passed,
}

/// What a process that expires orders has in memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Chosen {
    #[default]
    No,
    /// Read as overdue (F27).
    Picked,
    /// Expired, and its unit is not returned yet: only where the return is a transaction of its own.
    RefundDue,
}

/// What a process that gives grants has in memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Giving {
    #[default]
    No,
    /// Read as open, in this epoch of the sale.
    Read(u8),
    /// Redis has it; the mark comes next.
    Given,
}

/// Units on their way from the database to Redis; named by the order, so there is one of each kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Return {
    /// 0: there is no such grant.
    pub units: u8,
    pub epoch: u8,
    pub marked: bool,
    /// Redis has its name.
    pub named: bool,
    /// Its units are among those that Redis sells or has sold.
    pub inside: bool,
    pub giving: [Giving; PROCESSES],
}

/// Whose units a grant returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Of {
    /// `return-<lowest request id>`.
    Batch,
    /// `cancel-<request id>`.
    Cancel,
}

/// Money at the provider.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Money {
    #[default]
    None,
    Exact,
    Other,
}

/// A payment of the provider, and its row.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Payment {
    pub money: Money,
    /// The provider has no answer yet, and reports it again.
    pub reporting: bool,
    pub row: Option<PaymentState>,
    /// How often it was recorded as new.
    pub recorded: u8,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Order {
    pub purchase: Purchase,
    /// `orders.state`, once there is an order.
    pub state: Option<OrderState>,
    pub due: Due,
    pub payments: [Payment; PAYMENTS],
    pub chosen: [Chosen; PROCESSES],
    pub batch: Return,
    pub cancel: Return,
    /// How often its unit came back in the database.
    pub returned: u8,
}

impl Order {
    pub fn grant(&self, of: Of) -> &Return {
        match of {
            Of::Batch => &self.batch,
            Of::Cancel => &self.cancel,
        }
    }

    pub fn grant_mut(&mut self, of: Of) -> &mut Return {
        match of {
            Of::Batch => &mut self.batch,
            Of::Cancel => &mut self.cancel,
        }
    }

    pub fn holds_unit(&self) -> bool {
        self.state.is_some_and(OrderState::holds_units)
    }
}

/// The sale in Redis.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Keys {
    #[default]
    Missing,
    Frozen,
    Open,
}

/// The rebuild of Redis by P5.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Rebuild {
    #[default]
    None,
    /// Empty frozen keys of a new epoch.
    Begun,
    /// One transaction read these units and marked all grants.
    Snapped(i8),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Shop {
    pub orders: [Order; BUYERS],
    /// `sales.stock`.
    pub stock: i8,
    pub db_epoch: u8,
    pub keys: Keys,
    pub units: i8,
    pub epoch: u8,
    pub rebuild: Rebuild,
    pub money_left: u8,
    pub acts_left: u8,
    pub faults_left: u8,
    /// Something happened that the table of orders forbids.
    pub illegal: bool,
    /// An order expired while its deadline was ahead.
    pub early: bool,
    /// A process gave what another one had given.
    pub twice: bool,
}

impl Shop {
    /// The sale is open, no buyer has bought yet.
    pub fn start(setup: &OrdersSetup) -> Self {
        let mut orders = [Order::default(); BUYERS];
        for order in orders.iter_mut().take(setup.buyers) {
            order.purchase = Purchase::Waits;
        }
        Self {
            orders,
            stock: setup.stock,
            db_epoch: 1,
            keys: Keys::Open,
            units: setup.stock,
            epoch: 1,
            rebuild: Rebuild::None,
            money_left: setup.money,
            acts_left: setup.acts,
            faults_left: setup.faults,
            illegal: false,
            early: false,
            twice: false,
        }
        .in_order()
    }

    /// Which buyer, payment or process is which does not matter.
    pub fn in_order(mut self) -> Self {
        for order in &mut self.orders {
            order.payments.sort_unstable();
        }
        let mut swapped = self;
        for order in &mut swapped.orders {
            order.chosen.swap(0, 1);
            order.batch.giving.swap(0, 1);
            order.cancel.giving.swap(0, 1);
        }
        self.orders.sort_unstable();
        swapped.orders.sort_unstable();
        self.min(swapped)
    }

    /// Whether a process has nothing in memory.
    pub fn is_free(&self, process: usize) -> bool {
        let busy = |order: &Order| {
            order.chosen[process] != Chosen::No
                || [order.batch, order.cancel].iter().any(|grant| grant.giving[process] != Giving::No)
        };
        !self.orders.iter().any(busy)
    }

    /// Moves an order by the product's table. `false`: it does not move.
    pub fn step(&mut self, setup: &OrdersSetup, at: usize, event: OrderEvent) -> bool {
        let Some(state) = self.orders[at].state else { return false };
        if setup.lacking.is_none() {
            super::remember(state, event);
        }
        let OrderTransition::To(to) = state.after(event) else { return false };
        self.orders[at].state = Some(to);
        true
    }

    /// What a mutation does without asking the table; the law sees it if the table says otherwise.
    pub fn force(&mut self, at: usize, event: OrderEvent, to: OrderState) {
        let Some(state) = self.orders[at].state else { return };
        self.illegal |= state.after(event) != OrderTransition::To(to);
        self.orders[at].state = Some(to);
    }

    pub fn forget(&mut self, process: usize) {
        for order in &mut self.orders {
            order.chosen[process] = Chosen::No;
            order.batch.giving[process] = Giving::No;
            order.cancel.giving[process] = Giving::No;
        }
    }
}
