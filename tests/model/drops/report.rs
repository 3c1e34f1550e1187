//! The beginning of the section of `docs/model.md` about drops.

pub const HEAD: &str = "
## Drops

A model of a drop with two sales and one limit over both, on one shard. The script counts what a person has in the
drop from the buyers hashes of all its sales: there is no sum of its own that could be lost, rewound or edited. The
database counts it in `drop_purchases`, in the transaction that writes the order. Around both:

- a person with requests in both sales, from one account or two; a relay, a consumer that writes one order at a time;
- a restart of Redis with an older state of both sales and of the outbox, after which both are frozen; a lost buyers
  hash; a message that is parked, and replayed by an operator whenever he likes;
- the rebuild of each sale in its steps, one beside the other; orders that are cancelled and give their units back to
  the limits; a drop that is closed, all its sales by one statement, and archived.

It does not have: stock, which a limit does not touch; several shards (all about one person is on one); the steps of
relay and consumer, which are searched [above](#configurations); a rebuild that sleeps.

| law | |
|---|---|
";
