//! The beginning of the section of `docs/model.md` about events.

pub const HEAD: &str = "
## Events

A model of how other systems learn of what happened: one request, its order, and a subscriber of the event exchange. The
order moves by the product's own table (`domain::order_life`). Around it the model has, written a second time from
`src/events`, `src/p4_persist` and `src/p5_reconcile`:

- the outcome, by a consumer, who publishes the event before the ack, and stores its row where the broker does not take
  it; or by P5, who writes the row in its transaction;
- a message that is tried twice, a commit without an answer, dead letters that P5 removes once they are decided;
- a payment, and a cancellation that sends money back, each with its rows in its transaction;
- two publishers that read a page of one of the two tables, publish it, and delete its rows after the confirm; each dies
  between any two of these, and sends late what another one has sent long ago;
- a receiver that goes by the rule of [asyncapi.yaml](asyncapi.yaml).

It does not have: a bundle that the broker has in part; rows that cannot be read; several copies of the message.

A purged order queue, or a broker that loses its disk, takes the event of an order that was just committed
([guarantees](guarantees.md#what-may-happen-more-than-once)).

| law | |
|---|---|
";
