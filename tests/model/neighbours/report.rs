//! The beginning of the section of `docs/model.md` about two sales.

pub const HEAD: &str = "
## Two sales in one queue

A model of two sales whose messages share an order queue and a retry queue (`rabbitmq.queues` is 1 by default): *the
quiet one*, which Redis forgets and P5 rebuilds, and *the busy one*, whose row in the database another session holds for
as long as it likes. Written a second time from `src/p5_reconcile/rebuild`, `src/p4_persist` and `src/orders/persist`:

- buyers, a relay that sends, two consumers that take groups of both sales, write each order by itself where it has to
  be, and send back what they cannot write; a row that was found locked is left alone for a moment, then tried;
- the rebuild, check by check: ledger, outbox, retry queue, order queue, the quiet time, and all of it again, while the
  messages move on; and its watch, which sees each message that comes into a retry queue meanwhile;
- a consumer that dies, a system error, a row of the busy sale with which P5 fails in every round.

The order queue's length is of all sales: a rebuild waits for a moment in which consumers have taken what is in it. They
take it although a row is locked. Nothing is said of a consumer that is too slow for the buyers.

What a consumer has in hand is seen by no search. The quiet time is longer than that, and a message that is sent back
meanwhile makes it begin again, because the watch has seen it, however soon it is in a hand again. All rows but the last
say, to be smaller: a message that is sent back in the quiet time is still in its retry queue when the queues are
searched again, and none moves on twice in one search. With the watch the search after the quiet time finds nothing
more: leaving it out would break no law here. It is there for a leader that slept between the two.

| law | |
|---|---|
";
