//! The sales of an environment: made, drained, closed.

use super::{Environment, HOUR_MS};
use crate::baseline::mysql_bulk;
use crate::sizes::Spinner;
use seckill::cli::Failure;
use seckill::domain::drops::SalesDrop;
use seckill::domain::ids::{DropId, IdError, SaleId};
use seckill::domain::line::{LineKind, LinePlan};
use seckill::domain::order_life::PaymentTerms;
use seckill::domain::policy::PurchasePolicy;
use seckill::domain::sale::Sale;
use seckill::domain::timetable::Timetable;
use seckill::p5_reconcile::trim_all;
use seckill::runtime::now_ms;
use seckill::sales::SaleControl;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Between two questions whether something has come to its end.
const CHECK_EVERY: Duration = Duration::from_millis(20);

impl Environment {
    /// A warmed sale that is open now.
    pub async fn sale(&mut self, name: &str, stock: i64, limit: Option<u32>) -> Result<SaleId, Failure> {
        let sale = self.draft(name, stock, limit, -1_000).await?;
        let id = sale.sale_id.clone();
        self.sale_control().warm(&id).await?;
        self.sales.push(sale);
        Ok(id)
    }

    /// A warmed sale that is open now, whose orders have to be paid.
    pub async fn paying_sale(&mut self, name: &str, stock: i64, terms: PaymentTerms) -> Result<SaleId, Failure> {
        let sale = self.made_draft(name, stock, (Some(1), Some(terms)), -1_000).await?;
        let id = sale.sale_id.clone();
        self.sale_control().warm(&id).await?;
        self.sales.push(sale);
        Ok(id)
    }

    /// A warmed sale that is open now, whose raffle takes entries for an hour.
    pub async fn raffle(&mut self, name: &str, stock: i64) -> Result<SaleId, Failure> {
        let number = self.numbers(1);
        let name = format!("bench-{}-{name}-{number}", self.run);
        let id = SaleId::parse(&name).map_err(|error| Failure::Failed(error.to_string()))?;
        let ends_at_ms = now_ms() + HOUR_MS;
        let sale =
            Sale { policy: PurchasePolicy::OnePerUser, ..Sale::draft(id.clone(), stock, now_ms() - 1_000, ends_at_ms) };
        let line = LinePlan { kind: LineKind::Raffle, closes_at_ms: ends_at_ms, needs_beacon: false };
        let plan = Timetable { line: Some(line), ..Timetable::default() };
        self.servers.rows.sales.create_planned(&sale, &plan).await?;
        self.sale_control().warm(&id).await?;
        self.sales.push(sale);
        Ok(id)
    }

    /// The warmed sales of a new drop that are open now, in the order of their names.
    pub async fn drop_sales(
        &mut self,
        name: &str,
        count: usize,
        stock: i64,
        limit: Option<u32>,
    ) -> Result<Vec<SaleId>, Failure> {
        let bad = |error: IdError| Failure::Failed(error.to_string());
        let number = self.numbers(1);
        let name = format!("bench-{}-{name}-{number}", self.run);
        let ids = (0..count).map(|at| SaleId::parse(&format!("{name}-{at:02}")).map_err(bad));
        let sale_ids: Vec<SaleId> = ids.collect::<Result<_, _>>()?;
        let drop = SalesDrop {
            drop_id: DropId::parse(&name).map_err(bad)?,
            title: name.clone(),
            limit: limit.and_then(NonZeroU32::new),
            sale_ids: sale_ids.clone(),
        };
        let in_drop = Arc::new(drop.clone());
        let sale = |id: &SaleId| Sale {
            policy: PurchasePolicy::from_limit(limit),
            in_drop: Some(in_drop.clone()),
            ..Sale::draft(id.clone(), stock, now_ms() - 1_000, now_ms() + HOUR_MS)
        };
        let sales: Vec<(Sale, Timetable)> = sale_ids.iter().map(|id| (sale(id), Timetable::default())).collect();
        self.servers.rows.sales.create_all(&[(Some(&drop), &sales)]).await?;
        for id in &sale_ids {
            self.sale_control().warm(id).await?;
        }
        self.sales.extend(sales.into_iter().map(|(sale, _)| sale));
        Ok(sale_ids)
    }

    /// A sale that is in the database only and starts in `in_ms` milliseconds; a start far ahead keeps roles and audits from reading it.
    pub async fn draft(&mut self, name: &str, stock: i64, limit: Option<u32>, in_ms: i64) -> Result<Sale, Failure> {
        self.made_draft(name, stock, (limit, None), in_ms).await
    }

    async fn made_draft(
        &mut self,
        name: &str,
        stock: i64,
        (limit, payment): (Option<u32>, Option<PaymentTerms>),
        in_ms: i64,
    ) -> Result<Sale, Failure> {
        let number = self.numbers(1);
        let name = format!("bench-{}-{name}-{number}", self.run);
        let sale_id = SaleId::parse(&name).map_err(|error| Failure::Failed(error.to_string()))?;
        let sale = Sale {
            policy: PurchasePolicy::from_limit(limit),
            payment,
            ..Sale::draft(sale_id, stock, now_ms() + in_ms, now_ms() + in_ms.max(0) + HOUR_MS)
        };
        self.servers.rows.sales.create(&sale).await?;
        Ok(sale)
    }

    pub(super) fn sale_control(&self) -> SaleControl {
        self.servers.sale_control(&self.settings)
    }

    /// Lets the time of a line be over.
    pub async fn close_line(&self, id: &SaleId) -> Result<(), Failure> {
        Ok(mysql_bulk::close_line(&self.servers.db, id).await?)
    }

    /// Ends a sale of which everything landed; P5's own code then removes its keys from Redis.
    pub async fn archive(&mut self, id: &SaleId) -> Result<(), Failure> {
        self.sale_control().close(id).await?;
        let context = self.servers.reconcile_context(&self.settings);
        let none = || Failure::Failed(format!("sale {id} is gone from the database"));
        let sale = self.servers.rows.sales.get(id).await?.ok_or_else(none)?;
        trim_all(&context, &sale, 0, true).await?;
        self.archived.push(id.clone());
        Ok(())
    }

    /// Units that are orders by now, and units that Redis sold; of an archived sale it knows nothing any more.
    pub async fn landed_and_sold(&self, id: &SaleId) -> Result<(i64, i64), Failure> {
        let none = || Failure::Failed(format!("sale {id} is gone from the database"));
        let sale = self.servers.rows.sales.get(id).await?.ok_or_else(none)?;
        let landed = sale.granted - sale.stock;
        if self.archived.contains(id) {
            return Ok((landed, landed));
        }
        let mut left = 0;
        for shard in 0..self.settings.redis.shards {
            left += self.servers.redis.stock.units(id, shard).await?.unwrap_or(0);
        }
        Ok((landed, sale.granted - left))
    }

    /// Waits until everything sold is an order; `false` when `within` was not enough. Calls `report` with both figures.
    pub async fn drained(&self, id: &SaleId, within: Duration, report: &dyn Fn(i64, i64)) -> Result<bool, Failure> {
        let is_drained = async || {
            let (landed, sold) = self.landed_and_sold(id).await?;
            report(landed, sold);
            Ok(landed >= sold)
        };
        self.until(within, is_drained).await
    }

    /// Waits until the relay has published everything; `false` when `within` was not enough.
    pub async fn relayed(&self, within: Duration) -> Result<bool, Failure> {
        self.until(within, async || Ok(self.backlog().await? == 0)).await
    }

    pub async fn until(
        &self,
        within: Duration,
        is_so: impl AsyncFn() -> Result<bool, Failure>,
    ) -> Result<bool, Failure> {
        let end = Instant::now() + within;
        while !is_so().await? {
            if Instant::now() > end || self.stop.is_stopped() {
                return Ok(false);
            }
            self.stop.sleep(CHECK_EVERY).await;
        }
        Ok(true)
    }

    /// Makes every role run and waits until everything accepted so far has landed.
    pub async fn settle(&mut self, within: Duration, spinner: &Spinner) -> Result<(), Failure> {
        self.go_on()?;
        self.all_roles().await?;
        for sale in &self.sales {
            let report = |landed, sold| spinner.say(&format!("first {landed} of {sold} earlier ones land"));
            self.drained(&sale.sale_id, within, &report).await?;
        }
        self.go_on()
    }
}
