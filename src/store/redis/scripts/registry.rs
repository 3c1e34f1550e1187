//! The scripts of `lua/`, each with its SHA-1.

use fred::util::sha1_hash;
use std::borrow::Cow;
use std::sync::LazyLock;

/// One script of `lua/`.
pub(in crate::store::redis) struct Script {
    pub(super) source: &'static str,
    pub(super) sha: LazyLock<String>,
}

impl Script {
    /// Its source and its SHA-1 in this process, which in a test build may leave out a mechanism.
    pub(super) fn here(&self) -> (Cow<'static, str>, Cow<'_, str>) {
        #[cfg(feature = "faults")]
        if let Some(source) = super::slots::with_left_out(self.source) {
            let sha = sha1_hash(&source);
            return (source.into(), sha.into());
        }
        (self.source.into(), self.sha.as_str().into())
    }
}

macro_rules! scripts {
    ($($name:ident = $file:literal;)*) => {$(
        pub(in crate::store::redis) static $name: Script = Script {
            source: include_str!(concat!("../../../../lua/", $file)),
            sha: LazyLock::new(|| sha1_hash(include_str!(concat!("../../../../lua/", $file)))),
        };
    )*};
}

/// The reserve script as it is in its file; `reserve.rs` makes the script that runs.
pub(super) const RESERVE: &str = include_str!("../../../../lua/reserve.lua");

scripts! {
    ACTIVATE = "activate.lua";
    ARCHIVE = "archive.lua";
    BUCKET = "bucket.lua";
    CACHE_SALE = "cache_sale.lua";
    COUNT = "count.lua";
    FORGET_BUYER = "forget_buyer.lua";
    FORGET_PLACE = "forget_place.lua";
    FORGET_SALE = "forget_sale.lua";
    GRANT = "grant.lua";
    SET_STATE = "set_state.lua";
    SET_TERMS = "set_terms.lua";
    SETTLE = "settle.lua";
    RATE = "rate.lua";
    REBUILD_BEGIN = "rebuild_begin.lua";
    REBUILD_LOAD = "rebuild_load.lua";
    REBUILD_END = "rebuild_end.lua";
    RELAY_DONE = "relay_done.lua";
    RELAY_FAILED = "relay_failed.lua";
    RELAY_FORGET = "relay_forget.lua";
    RELAY_ORPHANS = "relay_orphans.lua";
    RELAY_PARK = "relay_park.lua";
    RELAY_TOUCH = "relay_touch.lua";
    OUTBOX_LIST = "outbox_list.lua";
    OUTBOX_LIST_HELD = "outbox_list_held.lua";
    LEASE_NODE = "lease_node.lua";
    ROOM_ENTER = "room_enter.lua";
    ROOM_RELEASE = "room_release.lua";
    TRANSFER_FORGET = "transfer_forget.lua";
    TRANSFER_GIVE = "transfer_give.lua";
    TRANSFER_MARKS = "transfer_marks.lua";
    TRANSFER_TAKE = "transfer_take.lua";
    TRIM = "trim.lua";
    UNLOCK = "unlock.lua";
    WITHDRAW = "withdraw.lua";
}
