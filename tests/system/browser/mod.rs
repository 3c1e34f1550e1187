//! The console and the shop in a real Chromium.

mod buyers;
mod challenge;
mod console;
mod console_lines;
mod console_orders;
mod console_sales;
mod cors;
mod drop_forms;
mod drops;
mod payments;
mod shop;
mod shop_drops;
mod shop_line_offers;
mod shop_lines;
mod webhooks;
