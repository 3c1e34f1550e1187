//! The beginning of the section of `docs/model.md` about two sales.

pub const HEAD: &str = "
## Two sales in one queue

A model of two sales whose messages share an order queue and a retry queue (`rabbitmq.queues` is 1 by default): *the
quiet one*, which Redis forgets and P5 rebuilds, and *the busy one*, whose row in the database another session holds for
as long as it likes. Written a second time from `src/p5_reconcile/rebuild`, `src/p4_persist` and `src/orders/persist`:

- buyers, a relay that sends, two consumers that take groups of both sales, write each order by itself where it has to
  be, and send back what they cannot write; a row that was found locked is left alone for a moment, then tried;
- the rebuild, check by check: ledger, outbox, order queue, retry queue, order queue, retry queue, the quiet time, and
  all of it again, while the messages move on;
- a consumer that dies, a system error, a row of the busy sale with which P5 fails in every round.

The order queue's length is of all sales: a rebuild waits for a moment in which consumers have taken what is in it. They
take it although a row is locked. Nothing is said of a consumer that is too slow for the buyers.

The searches take milliseconds, and what a consumer has in hand is seen by none of them. All rows but the last say: a
message that is sent back in the quiet time is still in its retry queue when the queues are searched again. The product
does not ensure that (`p5_reconcile.interval_ms` is above `rabbitmq.retry_delay_ms`): a message that Redis has
forgotten, and that is sent back again and again, may be in a consumer's hand at each search (N2 in the last row). The
rebuild counts its unit as for sale. Its order is written all the same, and the database refuses the last of those who
bought too many.

| law | |
|---|---|
";
