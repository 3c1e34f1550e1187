//! What holds of a sale over all its requests: each acceptance number is one request's, no more is accepted than was given, transfers
//! give what they took, once, and nothing of an epoch is decided after the next one has begun to sell.

use super::Finding;
use super::hands::Context;
use super::line::{Line, Traced, Word};
use super::request::Losses;
use std::collections::{BTreeMap, HashMap, HashSet};

/// One series of acceptance numbers.
type Series = (Word, u32, u16);

/// What is known of all sales.
#[derive(Default)]
pub struct Sales {
    /// The request that each number was given to.
    numbers: HashMap<(Series, u64), u64>,
    /// The number of each request, and its units.
    of_request: HashMap<u64, (Series, u64)>,
    accepted: BTreeMap<(Word, u32), u64>,
    granted: BTreeMap<(Word, u32), HashMap<(u16, Word), i64>>,
    rebuilt: BTreeMap<(Word, u32), HashMap<u16, i64>>,
    /// Where the units of a sale's epoch were fixed, first.
    fixed: BTreeMap<(Word, u32), u64>,
    taken: HashMap<(Word, Word), i64>,
    given: HashMap<(Word, Word), (u64, u64)>,
}

impl Sales {
    /// Takes in the lines of a process.
    pub fn learn(&mut self, traced: &Traced, losses: Losses, found: &mut Vec<Finding>) {
        for line in &traced.lines {
            if let Some(wrong) = self.number(line).filter(|_| !losses.accepts) {
                found.push(Finding::of("T4", traced, line, wrong));
            }
            if let Some(wrong) = self.units(line) {
                found.push(Finding::of("T5", traced, line, wrong));
            }
        }
    }

    fn number(&mut self, line: &Line) -> Option<String> {
        let (sale, epoch, shard, no) = (line.sale.clone()?, line.epoch?, line.shard?, line.no?);
        let (rid, series) = (line.rid?, (sale, epoch, shard));
        let first = *self.numbers.entry((series.clone(), no)).or_insert(rid);
        if first != rid {
            return Some(format!("the number {no} was given to {first} and to {rid}"));
        }
        let Some((known, number)) = self.of_request.get(&rid) else {
            *self.accepted.entry((series.0.clone(), epoch)).or_default() += line.qty.unwrap_or(0);
            self.of_request.insert(rid, (series, no));
            return None;
        };
        (*known != series || *number != no).then(|| format!("it has two numbers: {number} and {no}"))
    }

    fn units(&mut self, line: &Line) -> Option<String> {
        let sale = line.sale.clone()?;
        let units = line.units.unwrap_or(0);
        let name = |about: &Option<Word>| about.clone().map(|about| (sale.clone(), about));
        match line.point() {
            "granted" if matches!(line.verdict(), "0" | "1") => {
                let of_epoch = self.granted.entry((sale, line.epoch?)).or_default();
                let before = of_epoch.insert((line.shard?, line.about.clone()?), units);
                before
                    .filter(|before| *before != units)
                    .map(|before| format!("a grant of {before} units, and of {units}"))
            }
            "rebuild_fixed" => {
                let at = self.fixed.entry((sale, line.epoch?)).or_insert(line.at);
                *at = line.at.min(*at);
                None
            }
            "rebuild_ended" => {
                self.rebuilt.entry((sale, line.epoch?)).or_default().insert(line.shard?, units);
                None
            }
            "taken" => {
                let before = self.taken.insert(name(&line.about)?, units)?;
                (before != units).then(|| format!("a transfer of {before} units, and of {units}"))
            }
            "given" if line.verdict() == "1" => {
                let given = self.given.entry(name(&line.about)?).or_insert((0, line.at));
                *given = (given.0 + 1, given.1.min(line.at));
                (given.0 > 1).then(|| "a transfer was given twice".to_owned())
            }
            "given" if line.verdict() == "0" => {
                self.given.entry(name(&line.about)?).or_insert((0, line.at));
                None
            }
            _ => None,
        }
    }

    /// What only shows when every process is known.
    pub fn judge(&self, processes: &[(Traced, Vec<Context>)], losses: Losses, found: &mut Vec<Finding>) {
        for (traced, contexts) in processes {
            for (line, context) in traced.lines.iter().zip(contexts) {
                if let Some(epoch) = self.is_over(line, context) {
                    let wrong =
                        format!("ordered in an epoch that is over: the units of epoch {epoch} were fixed before");
                    found.push(Finding::of("T6", traced, line, wrong));
                }
                if line.point() == "forgotten" {
                    let key = line.sale.clone().zip(line.about.clone());
                    let given = key.is_some_and(|key| self.given.contains_key(&key));
                    if !given {
                        found.push(Finding::of(
                            "T5",
                            traced,
                            line,
                            "a transfer is forgotten that was not given".to_owned(),
                        ));
                    }
                }
            }
        }
        for ((sale, epoch), accepted) in self.accepted.iter().filter(|_| !losses.accepts) {
            if let Some(offered) = self.offered(sale, *epoch).filter(|offered| i128::from(*accepted) > *offered) {
                let detail = format!("sale {sale}, epoch {epoch}: {accepted} units accepted, {offered} were given");
                found.push(Finding { rule: "T7", detail });
            }
        }
    }

    /// Whether this is an order of an epoch after whose end the units were counted anew; the epoch that sells then.
    fn is_over(&self, line: &Line, context: &Context) -> Option<u32> {
        if line.point() != "decided" || line.verdict() != "ORDERED" {
            return None;
        }
        let key = (line.sale.clone()?, line.epoch?);
        let mut later = self.fixed.range((key.0.clone(), key.1 + 1)..).take_while(|((sale, _), _)| *sale == key.0);
        later.find(|(_, at)| context.from > **at).map(|((_, epoch), _)| *epoch)
    }

    /// Units that an epoch's keys were given; `None` where that is not known as a whole.
    fn offered(&self, sale: &Word, epoch: u32) -> Option<i128> {
        let key = (sale.clone(), epoch);
        let granted = self.granted.get(&key).map_or(0, |grants| grants.values().map(|units| i128::from(*units)).sum());
        if epoch == 1 {
            return Some(granted);
        }
        let rebuilt = self.rebuilt.get(&key)?;
        let shards: HashSet<u16> = self.of_request.values().map(|((_, _, shard), _)| *shard).collect();
        let is_whole = shards.iter().all(|shard| rebuilt.contains_key(shard));
        is_whole.then(|| granted + rebuilt.values().map(|units| i128::from(*units)).sum::<i128>())
    }
}
