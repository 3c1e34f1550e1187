//! P1, the entry: who is let in, what is read of a request, and what a buyer gets as answer.

mod access;
mod bad_input;
mod buyer_ids;
mod catalog;
mod clock_steps;
mod cors;
mod issuers;
mod kept_connections;
mod openapi;
mod order_status;
mod order_status_events;
mod overload;
mod purchases;
mod replays;
mod rotation;
mod sale_list;
mod sale_status;
mod sale_window;
mod sold_out;
mod tokens;
mod waiters;
mod waiting_room;
mod waiting_room_order;
mod waiting_room_release;
mod x_request_id;
