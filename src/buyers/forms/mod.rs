//! What operators say about buyers, and the rules for it. The command line and the admin API read the same ones.

mod block;
mod forget;
mod pass;

pub(crate) use block::{BlockForm, buyer};
pub(crate) use forget::{ForgetForm, NewForgetting};
pub(crate) use pass::{BadPass, NewPass, PassForm, PassOf};
