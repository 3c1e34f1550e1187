//! Faults inside Redis, past the product: copies of a sale's keys, and the damage done to them.
//!
//! A copy of a sale is its keys under another prefix, and its entries of the outbox. A fault on one sale is one transaction.

use super::faults::SaleFault;
use super::plan::Scene;
use crate::deployment::PREFIX;
use crate::dump::order_lines;
use crate::dump::resp::{RawRedis, Reply};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use std::collections::BTreeSet;

/// Shards of every sale here.
pub const SHARDS: u16 = 2;
/// The keys of a sale; the last one is there only while units are between two buckets.
const NAMES: [&str; 6] = ["meta", "stock", "buyers", "ledger", "grants", "transfers"];

/// An entry of the outbox.
#[derive(Debug, Clone)]
struct Entry {
    shard: u16,
    id: String,
    /// Requests whose orders it has.
    rids: Vec<String>,
    /// Field and value, one behind the other.
    fields: Vec<String>,
}

/// A sale as it was in Redis.
#[derive(Debug, Clone)]
pub struct Copy {
    /// Prefix of its keys.
    prefix: String,
    entries: Vec<Entry>,
}

/// A connection to Redis.
pub struct RedisFaults(RawRedis);

fn key(prefix: &str, shard: u16, name: &str, sale: &str) -> String {
    format!("{prefix}:{{{shard}}}:{name}:{sale}")
}

fn outbox(shard: u16) -> String {
    format!("{PREFIX}:{{{shard}}}:outbox")
}

impl RedisFaults {
    /// On the server at `url`.
    pub async fn on(url: &str) -> Self {
        Self(RawRedis::at(url, PREFIX).await)
    }

    /// Copies a sale as it is now; `name` distinguishes the copies of a sale.
    pub async fn copy(&mut self, sale: &str, name: &str) -> Copy {
        let prefix = format!("copy-{name}");
        for shard in 0..SHARDS {
            for part in NAMES {
                let (from, to) = (key(PREFIX, shard, part, sale), key(&prefix, shard, part, sale));
                self.0.call(&["COPY", &from, &to, "REPLACE"]).await;
            }
        }
        Copy { prefix, entries: self.entries(sale).await }
    }

    /// The sale's entries in the outboxes.
    async fn entries(&mut self, sale: &str) -> Vec<Entry> {
        let mut found = Vec::new();
        for shard in 0..SHARDS {
            for entry in self.0.call(&["XRANGE", &outbox(shard), "-", "+"]).await.items() {
                let [id, fields] = <[Reply; 2]>::try_from(entry.items()).expect("an entry");
                let fields: Vec<String> = fields.items().iter().map(Reply::text).collect();
                let field = |name: &str| {
                    let at = fields.iter().step_by(2).position(|field| field == name)?;
                    Some(fields[2 * at + 1].clone())
                };
                if field("s").as_deref() == Some(sale) {
                    let lines = field("o").map(|lines| order_lines::read(&lines)).unwrap_or_default();
                    let rids = lines.into_iter().map(|(rid, _)| rid).chain(field("r")).collect();
                    found.push(Entry { shard, id: id.text(), rids, fields });
                }
            }
        }
        found
    }

    /// Runs the commands in one step; how many of them changed something.
    async fn at_once(&mut self, commands: &[Vec<String>]) -> usize {
        self.0.call(&["MULTI"]).await;
        for command in commands {
            self.0.call(&command.iter().map(String::as_str).collect::<Vec<_>>()).await;
        }
        let replies = self.0.call(&["EXEC"]).await.items();
        let changed = |reply: &&Reply| match reply {
            Reply::Int(count) => *count > 0,
            Reply::Bytes(_) => true,
            Reply::Nil | Reply::List(_) | Reply::Error(_) => false,
        };
        assert!(!replies.iter().any(|reply| matches!(reply, Reply::Error(_))), "{commands:?}: {replies:?}");
        replies.iter().filter(changed).count()
    }

    /// Takes up to `stuck` of the sale's waiting entries away: a relay has them in its hand, and never comes back. Returns
    /// their requests.
    pub async fn stick(&mut self, scene: &Scene) -> Vec<String> {
        let entries = self.entries(&scene.sale).await;
        // From the first half, so that others land behind them; some were there when the copies were taken, some were not.
        let from = StdRng::seed_from_u64(scene.dice).random_range(0..=entries.len() / 2);
        let mut stuck = Vec::new();
        for entry in entries.iter().skip(from).take(scene.stuck) {
            if self.at_once(&[gone(entry)]).await > 0 {
                stuck.extend(entry.rids.iter().cloned());
            }
        }
        stuck
    }

    /// Strikes a sale; how many keys, records or entries it hit. The fence has to be passed again, as after a restart.
    pub async fn strike(&mut self, scene: &Scene, fault: SaleFault, copy: &Copy) -> usize {
        let mut dice = StdRng::seed_from_u64(scene.dice);
        let (sale, one) = (scene.sale.as_str(), dice.random_range(0..SHARDS));
        let entries = self.entries(sale).await;
        let of = |shards: &[u16]| -> Vec<Vec<String>> {
            let here = entries.iter().filter(|entry| shards.contains(&entry.shard));
            here.map(gone).collect()
        };
        let all: Vec<u16> = (0..SHARDS).collect();
        let commands = match fault {
            SaleFault::KeysGone => [keys_gone(sale, &all), of(&all)].concat(),
            SaleFault::ShardGone => [keys_gone(sale, &[one]), of(&[one])].concat(),
            SaleFault::Rewound => [keys_gone(sale, &all), of(&all), back(sale, &all, copy)].concat(),
            SaleFault::ShardRewound => [keys_gone(sale, &[one]), of(&[one]), back(sale, &[one], copy)].concat(),
            SaleFault::TakeForgotten => self.take_forgotten(sale, one).await,
            SaleFault::EntriesGone => of(&all),
            SaleFault::KeyGone => {
                let name = NAMES[dice.random_range(0..5)];
                vec![words(&["DEL", &key(PREFIX, one, name, sale)])]
            }
            SaleFault::StockRewound => {
                let (from, to) = (key(&copy.prefix, one, "stock", sale), key(PREFIX, one, "stock", sale));
                if self.0.call(&["GET", &from]).await == self.0.call(&["GET", &to]).await {
                    return 0;
                }
                vec![words(&["COPY", &from, &to, "REPLACE"])]
            }
            SaleFault::Forgotten => {
                let under_way = self.under_way(sale).await;
                let some: Vec<&(u16, String)> = under_way.iter().take(dice.random_range(1..=3)).collect();
                let record =
                    |(shard, rid): &&(u16, String)| words(&["HDEL", &key(PREFIX, *shard, "ledger", sale), rid]);
                let theirs = entries.iter().filter(|entry| some.iter().any(|(_, rid)| entry.rids.contains(rid)));
                some.iter().map(record).chain(theirs.map(gone)).collect()
            }
            SaleFault::RowsRewound
            | SaleFault::OrdersUndone
            | SaleFault::OrderRowsGone
            | SaleFault::OutcomeRowsGone => Vec::new(),
        };
        self.at_once(&commands).await
    }

    /// What the other shard has of a transfer that `source` has forgotten: the gift without the take.
    async fn take_forgotten(&mut self, sale: &str, source: u16) -> Vec<Vec<String>> {
        let target = 1 - source;
        let under_way = key(PREFIX, source, "transfers", sale);
        let number = |reply: Reply| if reply == Reply::Nil { 0 } else { reply.text().parse::<u64>().unwrap_or(0) };
        let units = number(self.0.call(&["GET", &key(PREFIX, source, "stock", sale)]).await);
        if units == 0 || self.0.call(&["EXISTS", &under_way]).await.int() > 0 {
            return Vec::new();
        }
        let (from, to) = (key(PREFIX, source, "meta", sale), key(PREFIX, target, "meta", sale));
        let taken = number(self.0.call(&["HGET", &from, &format!("to:{target}")]).await);
        let (number, units) = ((taken + 1).to_string(), units.div_ceil(2).to_string());
        let (mark, got) = (format!("from:{source}"), format!("got:{source}"));
        vec![
            words(&["HSET", &to, &mark, &number, &got, &format!("{number} {units}")]),
            words(&["HINCRBY", &to, "in", &units]),
            words(&["INCRBY", &key(PREFIX, target, "stock", sale), &units]),
        ]
    }

    /// Requests whose record says that they are on their way.
    async fn under_way(&mut self, sale: &str) -> Vec<(u16, String)> {
        let mut found = Vec::new();
        for shard in 0..SHARDS {
            let records = self.0.hash(&key(PREFIX, shard, "ledger", sale)).await;
            let open = records.into_iter().filter(|(_, record)| record.starts_with("Q "));
            found.extend(open.map(|(rid, _)| (shard, rid)));
        }
        found
    }

    /// As after a restart: no process sells before the fence was passed.
    pub async fn forget_scripts(&mut self) {
        self.0.call(&["SCRIPT", "FLUSH"]).await;
    }

    /// Everything goes.
    pub async fn flush_all(&mut self) {
        self.0.call(&["FLUSHALL"]).await;
    }

    /// Entries that wait in the outboxes.
    pub async fn waiting(&mut self) -> i64 {
        let mut waiting = 0;
        for shard in 0..SHARDS {
            waiting += self.0.call(&["XLEN", &outbox(shard)]).await.int();
        }
        waiting
    }

    /// Records in the sale's ledgers.
    pub async fn remembered(&mut self, sale: &str) -> i64 {
        let mut records = 0;
        for shard in 0..SHARDS {
            // The empty field marks the hash as created.
            records += self.0.call(&["HLEN", &key(PREFIX, shard, "ledger", sale)]).await.int() - 1;
        }
        records
    }

    /// The sales that keys are of, by what stands behind the key's kind.
    pub async fn sales(&mut self) -> BTreeSet<String> {
        let keys = self.0.call(&["KEYS", &format!("{PREFIX}:{{*}}:*:*")]).await.items();
        let of_key = |key: String| {
            let (kind, sale) = key.split_once("}:")?.1.split_once(':')?;
            (kind != "processing").then(|| sale.to_owned())
        };
        keys.into_iter().filter_map(|key| of_key(key.text())).collect()
    }

    /// What is left of these sales and their copies goes: the next wave begins on empty deployment.
    pub async fn clear(&mut self, sales: &[&str]) {
        for pattern in [format!("{PREFIX}:*"), "copy-*".to_owned()] {
            for found in self.0.call(&["KEYS", &pattern]).await.items() {
                let found = found.text();
                if sales.iter().any(|sale| found.ends_with(&format!(":{sale}"))) {
                    self.0.call(&["DEL", &found]).await;
                }
            }
        }
        for sale in sales {
            let commands: Vec<Vec<String>> = self.entries(sale).await.iter().map(gone).collect();
            self.at_once(&commands).await;
        }
    }
}

fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

fn gone(entry: &Entry) -> Vec<String> {
    words(&["XDEL", &outbox(entry.shard), &entry.id])
}

fn keys_gone(sale: &str, shards: &[u16]) -> Vec<Vec<String>> {
    let keys = shards.iter().flat_map(|shard| NAMES.map(|name| key(PREFIX, *shard, name, sale)));
    // The cached sale has no shard, and no process believes it.
    keys.map(|key| words(&["DEL", &key])).collect()
}

/// What the copy has comes back.
fn back(sale: &str, shards: &[u16], copy: &Copy) -> Vec<Vec<String>> {
    let keys = shards.iter().flat_map(|shard| NAMES.map(|name| (*shard, name)));
    let keys = keys.map(|(shard, name)| {
        words(&["COPY", &key(&copy.prefix, shard, name, sale), &key(PREFIX, shard, name, sale), "REPLACE"])
    });
    let entries = copy.entries.iter().filter(|entry| shards.contains(&entry.shard));
    let entries = entries.map(|entry| {
        let add = words(&["XADD", &outbox(entry.shard), "*"]);
        add.into_iter().chain(entry.fields.iter().cloned()).collect()
    });
    keys.chain(entries).collect()
}
