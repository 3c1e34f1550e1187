//! The load generator against servers that misbehave by rule: it counts within fractions of a second.

mod http;
mod run;
