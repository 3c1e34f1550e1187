//! The console and the shop in a real Chromium.

mod challenge;
mod console;
mod console_orders;
mod console_sales;
mod cors;
mod drops;
mod payments;
mod shop;
mod webhooks;
