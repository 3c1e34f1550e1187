//! The beginning of the section of `docs/model.md` about webhooks.

pub const HEAD: &str = "
## Webhooks

A model of the deliveries of one webhook ([Webhooks](operations.md#webhooks)), whose rows are there: they are written as
those of events are. Each has a state of the product (`domain::webhook`). Around it the model has, written a second time
from `src/events/webhooks`:

- a leader that loads due rows, calls the receiver, and records some results at once, each by its condition;
- a receiver that takes a call, refuses it, takes it without an answer, or answers 410, as often as it likes;
- a leader that dies and forgets, and one that slept and goes on beside the next one until it notices;
- results that are recorded twice, because the database's answer was lost;
- a person who replays a delivery at any moment, and the deletion of old rows in two steps.

It does not have: pauses and deadlines (a row that waits may be due at any moment); more than two tries before a
delivery is DEAD; several webhooks, which share nothing but places; a change of the subscriptions.

| law | |
|---|---|
";
