//! The section of `docs/model.md` about the paths that `tests/generated` plays on real servers.

pub const SECTION: &str = "
## The model against the code

`tests/generated` walks through these very models and plays what it walked on real servers: the real scripts, tables
and queues, one step at a time. After each step it compares both sides, fact by fact, and a difference is a failed
test. It prints the configuration, the seed, the shortest path that still differs, and what both sides say.

| configuration | of the model |
|---|---|
| relays and consumers, every fault | protocol |
| one buyer, one unit each | protocol |
| one buyer, Redis forgot who bought | protocol |
| an entry of several orders, records are trimmed | protocol |
| Redis behind, answers wait for the disk | protocol |
| Redis emptied, givers and leaders die | protocol, books |
| two leaders rebuild | protocol, books |
| the database goes back to a backup | protocol, books |
| something is parked when Redis is emptied | protocol, books |
| one order, everything about it | orders |
| batches of two | orders |
| Redis emptied, its rebuild dies | orders |
| writes wait for the replicas | two buckets |
| a server is replaced at any moment | two buckets |
| raffle: two ranks, leaders die and sleep | lines |
| waitlist: two ranks, the door is forgotten | lines |
| waitlist: others set the door | lines |
| waitlist: who has clicked enters | lines |
| waitlist: Redis forgets the sale | lines |
| raffle: Redis forgets an offer | lines |

**Which paths.** A search visits all that a configuration can reach, and notes each *kind of step*: an action with
the fields that it changed, before and after; and a fault with each step that was under way when it came. The first
paths are shortest ways that together have every kind. The others are random, and prefer the kinds that were walked
least. The same seed gives the same paths. `make generated` plays 10,000 and fails if a kind is on none of them;
`PATHS=300` plays a random sample, without the search. `make test` does that with a seed of its own, and a share of each
configuration. One seed, one configuration: `make generated SEED=7 PATHS=500 ONLY=\"two leaders\"`.

**What a step is.** The product's own calls, one for each step: `lua/reserve.lua` by the handle that P2 uses, the
boot fence, reading, deleting, counting and parking of entries, publishing with its confirm, P4's transaction, P5's
audit and repair of one request, `dlq give-up`, grants, payments, the sweep, transfers. A rebuild, and who carries a
grant, are the product's functions from beginning to end: they wait at marked places between two steps
(`between_steps`, feature `faults`), and a process that dies is a task that is dropped there.

**What a fault is.** Redis that loses its tail has the keys of its last sync and no script. Emptied, it has neither.
A server that is replaced has the keys of its replica and no script. A database that goes back has the rows of its
copy. The broker that loses data has empty queues. A system error comes from a trigger behind the transaction's last
statement, or at its first one. A returned message was published where no queue is. A lost call, confirm or commit
is one whose answer is not read.

**What is compared.** Redis: state, epoch, number, units, grants by id, each ledger record, each entry with its
owner and attempts, the relay DLQ, whether the script is there, both sides of each transfer. Database: stock, epoch,
granted units, outcomes with their reasons, orders with their states, grants, payments. Broker: messages that wait,
messages to be retried, what is in the MQ DLQ; each delivery must be of the right request and attempt. Where the
model says what an answer is, the answers too.

**Left out** are mechanisms, one after the other, in a test of its own: each has to be a difference within the first
paths (`replay_check`, `ledger`, `boot_fence`, `own_outcome`, `recorded_refusal`, `rollback`, `grant_once`,
`expiry_condition`; of lines each but one has its row above).

**Runs of the product.** The other way round, each request of a chaos run is held against the protocol's model: the
lines that the processes wrote about it ([`tests/traces`](../tests/traces/checker/mod.rs), rule T8) have to be steps of
the model, taken by its own actions, in some order that the lines leave. Between two lines the model may take steps that
leave none: a call that runs late, a reply that is lost, a process that dies and says no more. What became of an order
(money, cancellations, its deadline) is held against the model of orders in the same way. It is one request at a time,
so what others take (a refusal before it is accepted) is left out.

**What it cannot see.**

- The loops of P3 and P4, which decide what is done next. The steps are theirs, their order is the path's.
- Time: leases, idle times, pauses, the broker's own expiry of retries (a path says when a message is old enough and
  puts it back).
- Two steps at the same instant. That is what transactions, scripts and the integration tests are about.
- An audit that reads its two servers at two moments; closed gaps.
- Steps in which the product does less, or later, than the model: a failed try of an entry that the relay does not have
  any more (the product counts none); the load of nothing into keys that are gone (it notices at its last step); a
  leader that judges a second time while something is in a hand (its quiet time) or undecided (it decides that in the
  same step) or after another one has its next epoch (it ends there).
- Money that is reported again after it came before its order: the product judges it again, the model does not know
  that.
- A line in which a pass serves two entries: the product asks for all of them at once, the model for one after the
  other. Two entries are one pass each here; several of one pass are played by the chaos run and the named drops.
- Of a line: a sale that is rebuilt while a leader is about to buy (an epoch refuses the older call, and the model has
  none); a buyer who is blocked beside another entry (the product serves that one in the same pass); a number that is
  lost before another one; what is LAPSED and was accepted late.
- What no fact is about: marks in ledger records, events, webhooks, texts, times.
";
