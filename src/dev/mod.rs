//! Private servers for `seckill dev` and for the integration tests: redis-server, rabbitmq-server and mariadbd as
//! children on loopback, with their data in one folder and settings as durable as production must have them.
//!
//! Input: a folder. Output: three URLs. What a crash here leaves behind: the data folders and nothing else; the kernel
//! kills every child when the process that started it dies (see [`child`]).

mod binaries;
pub mod child;
mod demo;
mod demo_drop;
mod encryption;
mod error;
mod kind;
mod lock;
pub mod mariadb;
pub mod ports;
pub mod rabbitmq;
mod readiness;
pub mod redis;
mod secrets;
mod server;
pub mod servers;
mod split;
pub mod stack;
mod stack_plan;
pub mod state;

pub use binaries::{find as server_program, find_rabbitmq_server};
pub use child::Child;
pub(crate) use demo::DEMO_SALE;
pub use encryption::Encryption;
pub use error::DevError;
pub use kind::ServerKind;
pub use server::Server;
pub(crate) use servers::ServerProgress;
pub use servers::{External, PrivateServers, ServerUrls, clear};
pub use split::{Listen, RoleProcess, environment};
pub use state::DevState;
