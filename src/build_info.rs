//! Which build this is, for `--version`, the first log line and `/admin/v1/whoami`.
//!
//! The commit comes from `SECKILL_COMMIT` in the environment of the build (the Makefile, `scripts/dist.sh` and the Dockerfile set
//! it), which `main.rs` alone reads. A build script that asked git would compile the whole library again after each commit; this
//! way another commit compiles `main.rs` and links. Without the variable, as in a build by hand, no commit is named.

use std::sync::OnceLock;

static VERSION: OnceLock<String> = OnceLock::new();

/// Called once, first in `main`.
pub fn set_commit(commit: Option<&str>) {
    VERSION.get_or_init(|| text(commit));
}

/// The version, with the commit when it is known: `0.2.0 (6f4c73a)`.
#[must_use]
pub fn version() -> &'static str {
    VERSION.get_or_init(|| text(None))
}

fn text(commit: Option<&str>) -> String {
    let version = env!("CARGO_PKG_VERSION");
    match commit.map(str::trim).filter(|commit| !commit.is_empty()) {
        Some(commit) => format!("{version} ({commit})"),
        None => version.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_commit_is_named_when_it_is_known() {
        assert_eq!(text(Some(" 6f4c73a\n")), format!("{} (6f4c73a)", env!("CARGO_PKG_VERSION")));
        for unknown in [None, Some(""), Some("\n")] {
            assert_eq!(text(unknown), env!("CARGO_PKG_VERSION"));
        }
    }
}
