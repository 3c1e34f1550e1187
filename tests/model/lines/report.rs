//! The beginning of the section of `docs/model.md` about lines.

pub const HEAD: &str = "
## Lines

A model of the line of a sale: a raffle whose ranks are drawn, or a waitlist whose ranks are the order of arrival.
Units go to the lowest rank that waits and wants no more than are there, as a purchase that a leader makes for it;
no click buys while an entry waits. It has:

- the leader's pass in its steps: it counts the units in Redis, reads who is next, writes a request id into each of
  these entries (one transaction), buys for one after the other, and records what P2 said;
- the door in its steps: `by_line` in the sale's row, whose version goes up with each change; Redis' clock, then the
  row, then the script that sets the door, and leaves one that was read later; then the line is opened. A waitlist
  that is sold out goes this way, and back when no entry waits and units are there. A raffle opens its door when
  no entry waits any more. Two more processes make Redis follow the row, as slowly as they like;
- a leader that dies between any two of them; and one that sleeps, and goes on with what it had read while the next
  one acts;
- a purchase that is given up by its caller, and runs late, or never, or at once without an answer; P2's replays, by
  request id; an order that is written later, paid, or ended by the clock, or that cannot be written; its units,
  which come back to Redis by a grant with its name;
- the comparison of entries with outcomes and orders: whatever has a request id is compared;
- buyers who leave or are blocked at any moment; who buys by click, again and again; one of them enters the line,
  too, and has his limit;
- a Redis that forgets the sale, with what it had accepted or without, and its rebuild; a restart of Redis without
  its last writes, which are the door's: no number shows that, and the boot fence lets the sale go on.

The rules that it found out, beyond the obvious ones (most are a mutation below):

- A door that was read before does not replace one that was read later. Else a process that has read `by_line` = 0
  and sleeps opens the door of a line in which somebody waits by now.
- The line is opened by a leader that has read `by_line` = 1, has taken Redis' clock then, has read the same version
  of the row, and has set the door by this clock: all that was read before the row's change is older. That Redis'
  door is shut is not enough. It may have been set by a clock from before the row was changed, and then an even older
  reading with a later clock opens it.
- The door counts as shut only in keys that sell: frozen ones are replaced. A rebuild reads the row again when its
  keys are there, and the boot fence makes the door follow the row before the script is loaded.
- Entries in hand are compared, too: the answer of the last unit's purchase may be lost, and then no unit is there
  that would have it asked again. So are those that lapsed because of a limit or a block: a call of theirs may run
  late.
- An offer without an outcome is asked again, in its place, because Redis may have forgotten it; meanwhile the door
  stays shut. If a slept leader or a late call gives its unit to the next rank before that, it waits for another one
  (L7).

**Ranks** (L5, L6). A pass asks by rank, and ends with the first purchase that is not answered, or finds too few
units. Then no rank is passed over by one that wants as much, whatever sleeps. Called *at once*, a pass may give the
second rank its units before the first one, whose call runs late: L5 breaks, but the first one's units are there,
and it gets them (L6). That needs a count that is true: a leader that slept between its count and its choice chooses
more than there is, and which of them is served is chance.

It does not have: the draw (entries do not change after it); several shards, where units have to move to the
buyer's; a sale that is paused or ends; money after the payment; a database that is restored; a message that is
parked; who enters again after leaving, which is a new entry.

| law | |
|---|---|
";
