//! P1, the entry: who is let in, what is read of a request, and what a buyer is told.

mod access;
mod bad_input;
mod buyer_ids;
mod catalog;
mod clock_steps;
mod cors;
mod openapi;
mod overload;
mod purchases;
mod replays;
mod room;
mod room_order;
mod room_release;
mod status;
mod status_events;
mod statuses;
mod tokens;
mod window;
mod x_request_id;
