//! The kinds of faults: how often each comes, and how long it lasts.

use serde::{Serialize, Serializer};

/// What a fault hits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Aim {
    /// One process of a role.
    Process,
    /// One process at a named line, and a server with it.
    Step,
    /// All processes of a role.
    Role,
    /// Any of the three servers.
    Server,
    /// One link of one process.
    Link,
    /// This server, from inside.
    Redis,
    /// This server, from inside.
    Rabbit,
    /// This server, from inside.
    Mysql,
}

macro_rules! kinds {
    ($($kind:ident = $name:literal, $aim:ident, $weight:literal, $shortest:literal..=$longest:literal;)*) => {
        /// A kind of fault.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
        pub enum Kind {
            $(#[doc = $name] $kind,)*
        }

        impl Kind {
            /// Every kind.
            pub const ALL: &[Self] = &[$(Self::$kind,)*];

            /// Its one name.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$kind => $name,)* }
            }

            /// What it hits.
            pub const fn aim(self) -> Aim {
                match self { $(Self::$kind => Aim::$aim,)* }
            }

            /// How often it comes, compared to the others.
            pub const fn weight(self) -> u32 {
                match self { $(Self::$kind => $weight,)* }
            }

            /// Shortest and longest time it lasts, milliseconds.
            pub const fn length_ms(self) -> (u64, u64) {
                match self { $(Self::$kind => ($shortest, $longest),)* }
            }
        }
    };
}

kinds! {
    KillRole = "kill -9 role", Process, 30, 0..=0;
    CrashPoint = "death at a crash point", Process, 45, 4_000..=4_000;
    FailAtStep = "death at a crash point as a server fails", Step, 12, 5_000..=5_000;
    FreezeRole = "SIGSTOP role", Process, 30, 200..=3_000;
    TerminateRole = "SIGTERM rolling", Role, 5, 0..=0;
    NoRole = "role count to 0 and back", Role, 5, 500..=3_000;
    KillServer = "kill -9 server", Server, 6, 0..=0;
    FreezeServer = "SIGSTOP server", Server, 12, 200..=3_000;
    Delay = "link delay", Link, 40, 300..=3_000;
    Throttle = "link throttle", Link, 20, 300..=3_000;
    NothingToServer = "link one-way to server", Link, 30, 300..=3_000;
    NothingToClient = "link one-way to client", Link, 30, 300..=3_000;
    Partition = "link partition", Link, 30, 300..=3_000;
    Cut = "link cut", Link, 30, 200..=2_000;
    Reset = "link reset", Link, 30, 0..=0;
    DropReply = "reply dropped after execution", Link, 90, 2_000..=4_000;
    ScriptFlush = "redis SCRIPT FLUSH", Redis, 8, 0..=0;
    ClientKill = "redis CLIENT KILL", Redis, 8, 0..=0;
    RewriteAof = "redis BGREWRITEAOF", Redis, 8, 0..=0;
    RedisFull = "redis maxmemory", Redis, 8, 300..=2_000;
    ForgetConsumer = "redis XGROUP DELCONSUMER with pending", Redis, 8, 1_000..=2_000;
    DeleteEntry = "redis XDEL of a pending entry", Redis, 8, 1_000..=2_000;
    CloseConnections = "rabbit close all connections", Rabbit, 6, 0..=0;
    MemoryAlarm = "rabbit memory alarm", Rabbit, 5, 2_500..=4_000;
    Unbind = "rabbit order queue unbound", Rabbit, 4, 0..=0;
    DeleteOrders = "rabbit order queue deleted", Rabbit, 4, 0..=0;
    DeleteRetry = "rabbit retry queue deleted", Rabbit, 4, 0..=0;
    Purge = "rabbit order queue purged", Rabbit, 5, 0..=0;
    KillConnections = "mysql KILL of all connections", Mysql, 8, 0..=0;
    LockStock = "mysql stock rows locked", Mysql, 8, 500..=5_000;
    ReadOnly = "mysql read_only", Mysql, 8, 300..=3_000;
    FewConnections = "mysql max_connections", Mysql, 6, 500..=3_000;
    Deadlock = "mysql deadlock writer", Mysql, 10, 0..=0;
}

impl Kind {
    /// Whether requests may be gone from the pipeline afterwards, so that only the ledger names them.
    pub const fn destroys(self) -> bool {
        match self {
            Self::ForgetConsumer | Self::DeleteEntry | Self::DeleteOrders | Self::DeleteRetry | Self::Purge => true,
            Self::KillRole | Self::CrashPoint | Self::FreezeRole | Self::TerminateRole | Self::NoRole => false,
            Self::KillServer | Self::FreezeServer | Self::FailAtStep => false,
            Self::Delay | Self::Throttle | Self::NothingToServer | Self::NothingToClient | Self::Partition => false,
            Self::Cut | Self::Reset | Self::DropReply => false,
            Self::ScriptFlush | Self::ClientKill | Self::RewriteAof | Self::RedisFull => false,
            Self::CloseConnections | Self::MemoryAlarm | Self::Unbind => false,
            Self::KillConnections | Self::LockStock | Self::ReadOnly | Self::FewConnections | Self::Deadlock => false,
        }
    }
}

impl Serialize for Kind {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}
