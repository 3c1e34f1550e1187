//! What operators use: the admin API, the command line, the configuration, metrics and alert rules.

mod acts_kept;
mod admin_answers;
mod admin_api;
mod admin_language;
mod admin_places;
mod admin_roles;
mod admin_tokens;
mod alert_rules;
mod archive;
mod commands;
mod configuration;
mod doctor;
mod drops;
mod ended_sales;
mod metrics;
mod operator_acts;
mod output;
mod readiness;
mod sale_auto_close;
mod sale_changes;
mod sale_races;
mod tls_files;
mod vanished_hosts;
mod which_system;
mod withdrawals;
mod withdrawals_rewound;
