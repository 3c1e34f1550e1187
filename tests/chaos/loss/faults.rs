//! The faults: damage to one sale, or to a whole server.

use rand::Rng;
use rand::rngs::StdRng;
use rand::seq::SliceRandom;
use seckill::dev::ServerKind;

macro_rules! named {
    ($(#[$doc:meta])* $name:ident { $($(#[$variant_doc:meta])* $variant:ident = $text:literal,)* }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $name { $($(#[$variant_doc])* $variant,)* }

        impl $name {
            /// All of them.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];

            /// As it stands in the report.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $text,)* }
            }
        }
    };
}

named! {
    /// Something that is done to one sale.
    SaleFault {
        /// All its keys go, and its entries in the outbox.
        KeysGone = "Redis: the sale is gone",
        /// The same on one shard.
        ShardGone = "Redis: the sale is gone on one shard",
        /// One of its keys goes.
        KeyGone = "Redis: one key is gone",
        /// Its keys and its entries are those of an older copy.
        Rewound = "Redis: the sale went back",
        /// The same on one shard.
        ShardRewound = "Redis: the sale went back on one shard",
        /// One shard is as it was just before its last transfer to the other one: it has the units again, and so has the other.
        TakeForgotten = "Redis: one shard forgot its last transfer",
        /// Only the number of unsold units is an older one.
        StockRewound = "Redis: one value went back",
        /// Its entries in the outbox go.
        EntriesGone = "Redis: outbox entries are gone",
        /// Requests that are under way go, from ledger and outbox.
        Forgotten = "Redis: requests under way are forgotten",
        /// All its rows are those of an older copy.
        RowsRewound = "database: the sale went back",
        /// Some orders go as if they had never been: outcome, order, quota, and the units are unsold again.
        OrdersUndone = "database: orders were undone",
        /// Some rows of `orders` go, and nothing else.
        OrderRowsGone = "database: rows of orders are gone",
        /// Some rows of `request_outcome` go, and nothing else.
        OutcomeRowsGone = "database: rows of outcomes are gone",
    }
}

named! {
    /// Something that is done to a whole server.
    ServerFault {
        /// Everything in the order queue goes.
        QueuePurged = "RabbitMQ: the queue was emptied",
        /// The order queue goes with everything in it.
        QueueDeleted = "RabbitMQ: the queue was deleted",
        /// FLUSHALL.
        RedisEmptied = "Redis: everything is gone",
        /// It is restarted on an older append-only file.
        RedisFileOlder = "Redis: restarted on an older file",
        /// Everything in it is an older copy.
        DatabaseOlder = "database: an older copy was loaded",
        /// A file of it is damaged while it is dead.
        RedisFileDamaged = "Redis: a file is damaged",
        /// The same.
        BrokerFileDamaged = "RabbitMQ: a file is damaged",
        /// The same.
        DatabaseFileDamaged = "database: a file is damaged",
    }
}

impl ServerFault {
    /// Those of the waves; the others have runs of their own.
    pub const DRAWN: &'static [Self] =
        &[Self::QueuePurged, Self::QueueDeleted, Self::RedisEmptied, Self::RedisFileOlder, Self::DatabaseOlder];

    /// The server whose file is damaged.
    pub const fn damaged(self) -> Option<ServerKind> {
        match self {
            Self::RedisFileDamaged => Some(ServerKind::Redis),
            Self::BrokerFileDamaged => Some(ServerKind::Rabbitmq),
            Self::DatabaseFileDamaged => Some(ServerKind::Mysql),
            Self::QueuePurged | Self::QueueDeleted | Self::RedisEmptied => None,
            Self::RedisFileOlder | Self::DatabaseOlder => None,
        }
    }
}

impl SaleFault {
    /// Whether it falls on Redis.
    pub const fn on_redis(self) -> bool {
        match self {
            Self::KeysGone | Self::ShardGone | Self::KeyGone | Self::Rewound | Self::ShardRewound => true,
            Self::TakeForgotten | Self::StockRewound | Self::EntriesGone | Self::Forgotten => true,
            Self::RowsRewound | Self::OrdersUndone | Self::OrderRowsGone | Self::OutcomeRowsGone => false,
        }
    }
}

/// Every kind as often as every other one, in an order by chance.
pub struct Deck<T: 'static>(&'static [T], Vec<T>);

impl<T: Copy> Deck<T> {
    /// Of these.
    pub const fn of(all: &'static [T]) -> Self {
        Self(all, Vec::new())
    }

    /// The next one.
    pub fn draw(&mut self, dice: &mut StdRng) -> T {
        if self.1.is_empty() {
            self.1.extend(self.0);
            self.1.shuffle(dice);
        }
        self.1.pop().expect("a deck is not empty")
    }
}

/// One of them that falls on the other server.
pub fn another(first: SaleFault, dice: &mut StdRng) -> SaleFault {
    let others: Vec<SaleFault> =
        SaleFault::ALL.iter().copied().filter(|other| other.on_redis() != first.on_redis()).collect();
    others[dice.random_range(0..others.len())]
}
