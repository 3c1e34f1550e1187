//! The beginning of the section of `docs/model.md` about orders.

pub const HEAD: &str = "
## Orders after CONFIRMED

A second model, beside the one above: one sale with a payment step, and what becomes of its orders
([states](states.md#orders)). Each order moves by the product's own table, `domain::order_life`, and each payment by
`domain::payment::refund_reason`. Around them the model has, written a second time from `src/p6_fulfil`,
`src/orders/rows` and `src/sales/grants.rs`:

- buyers who buy a unit whenever Redis has one, and the consumer that writes the order;
- payments at any moment: before the order is there, in time, late, twice, of another amount, again after a lost
  answer; starts of a payment; cancels by the buyer and by an operator; money that goes back;
- two processes that expire orders and give grants (two leaders for a while, the api, P5). Each reads overdue orders,
  expires any batch of them in one transaction with its grant `return-<batch>`, reads open grants, gives them to Redis,
  marks them. It dies between any two of these, which are the places of F23, F27 to F29, F32 and F33, and forgets what
  it did;
- a Redis that is emptied, a rebuild in three steps that dies between any two, and orders that expire meanwhile;
- a database of another host that takes over with a clock behind. It forgets nothing.

It does not have: several units in an order; several sales or shards; limits that return (`limit_returns`); events,
which are rows of the same transactions; a sale that is closed or removed.

| law | |
|---|---|
";

/// Before the situations.
pub const REACHED: &str = "every cell of the table of orders, and each of these";
