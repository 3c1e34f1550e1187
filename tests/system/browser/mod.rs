//! The console and the shop in a real Chromium.

mod console;
mod cors;
mod shop;
