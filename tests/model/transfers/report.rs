//! The beginning of the section of `docs/model.md` about two buckets.

pub const HEAD: &str = "
## Two buckets

A third model: one sale on two servers, each with a bucket of units, and the transfers that bring units to the bucket
that has too few ([B4](architecture.md#several-buckets-stock-moves-to-the-buyer)). What two buckets say of each other
is judged by the product's own `domain::transfer_marks`. Around it the model has, written a second time from
`lua/transfer_*.lua`, `src/p2_reserve` and `src/p5_reconcile`:

- buyers of one unit each at any bucket that sells, whose orders are written at once;
- two processes that take, give and forget (the api, and P5 or a second api), and find each other's records;
- servers whose replica takes over: the replica may be behind by any number of writes. An accept is forgotten only where
  its number shows it: accepts that no number shows are searched above;
- processes that die between two steps, calls that come late or never;
- the fence of a server that was replaced, the audit that freezes a sale with units in two buckets, and rebuilds.

It does not have: more transfers out of a bucket between two rebuilds than the row says; more than two shards; requests
for several units; grants; a rebuild in its steps; audits that read the two servers at two moments (a unit test of
`domain::transfer_marks` has every pair of moments).

B1 and B5 break where `redis.wait_replicas` is below the number of replicas and a server is replaced while units are on
their way: the source has them again, and the gift still arrives (windows 15 and 122 of the [register](register.md)).
The audit sees it (B2) and freezes the sale; the orders of those who bought too many fail in the database.

| law | |
|---|---|
";
