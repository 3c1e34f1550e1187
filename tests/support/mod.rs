//! The harness. No test is in here. By what a test wants:
//!
//! | I want | where |
//! |---|---|
//! | a system in this process | `world`: `World::with`, `finish`; a second one on its servers `second_world` |
//! | something broken in it | `fault_injection`, `database_sessions`, `relay_state`, `audits`; crash points `processes/killable` |
//! | a phase or a store alone, or its model | `world/parts` |
//! | the operators' port, or the command line | `world/admin_port`, `processes/command_line` |
//! | a late, narrow, silent, cut or moving link | `links/link` |
//! | a server that I may kill | `breakable_servers` (all three), `own_redis`, `replicas`, `redis_sets`, `database_pair` |
//! | a process of the product to kill or watch | `killable`; every role, replaced one after another `fleet` |
//! | any other program | run to its end `programs`; killed and started again `supervised` |
//! | a browser | `processes/browser` |
//! | a receiver of webhooks, events or traces | `outside/hook_receiver`, `downstream`, `collector` |
//! | the shop's risk service, in every mood | `outside/risk_shop` |
//! | any other HTTP server | `outside/http_server` |
//! | a login service, or its keys | `outside/login_service`, `issuer` |
//! | alerts that fire | `outside/prometheus` |
//! | certificates | `outside/certificates` |
//! | a buyer | `buyers/purchases`; with orders and payments `orders`, in a crowd `retrying_buyers` |
//! | a client that sends nonsense | `buyers/raw_http` |
//! | to wait for something, a folder | `basics/time`, `basics/files` |
//! | Redis or SQL past the product | `world/fault_injection`; with errors as values `basics/raw_commands`, by hand `basics/resp` |
//!
//! `tests/it` and `tests/system` use all of it; `tests/chaos` and `tests/hosts` use single files that need nothing of the rest.

pub mod basics;
pub mod buyers;
pub mod links;
pub mod outside;
pub mod processes;
pub mod world;
