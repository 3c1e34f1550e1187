//! What buyers and the shop do at a system: purchases, repeats, waiting, payments; and HTTP that no good client sends.

pub mod challenges;
pub mod lines;
pub mod orders;
pub mod passes;
pub mod purchases;
pub mod raw_http;
pub mod refusals;
pub mod replays;
pub mod retrying_buyers;
pub mod waiting_rooms;
pub mod winners;
