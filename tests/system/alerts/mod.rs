//! Every alert, fired by a private Prometheus over real processes by the trouble that it is about.

mod books;
mod entry;
mod pipeline;
mod promises;
mod sales;
mod servers;
mod webhooks;
