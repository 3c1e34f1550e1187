//! Crowds of buyers: a thousand purchases and more, or a fixed rate.

mod audits;
mod outbox;
mod overload;
mod policies;
mod relay;
mod scripts;
mod waiting_room;
