//! A drop and its sales in a world.

use super::World;
use seckill::domain::drops::SalesDrop;
use seckill::domain::ids::{DropId, SaleId};
use seckill::domain::policy::PurchasePolicy;
use seckill::domain::sale::Sale;
use seckill::domain::timetable::Timetable;
use seckill::runtime::now_ms;
use std::num::NonZeroU32;

impl World {
    /// The drop `drop` with this limit (0: none), whose sales sell now, 10 units each, without limits of their own and but for what
    /// `change` says; not warmed.
    pub async fn drop_of(&self, limit: u32, sales: &[&str], change: impl Fn(&mut Sale)) -> Vec<SaleId> {
        self.planned_drop(limit, sales, |sale, _plan| change(sale)).await
    }

    /// The same, with the timetables that `change` says.
    pub async fn planned_drop(
        &self,
        limit: u32,
        sales: &[&str],
        change: impl Fn(&mut Sale, &mut Timetable),
    ) -> Vec<SaleId> {
        let sale_ids: Vec<SaleId> = sales.iter().map(|id| SaleId::parse(id).expect("a sale id")).collect();
        let drop = SalesDrop {
            drop_id: DropId::parse("drop").expect("a drop id"),
            title: "drop".into(),
            limit: NonZeroU32::new(limit),
            sale_ids: sale_ids.clone(),
        };
        let sale = |id: &SaleId| {
            let mut sale = Sale {
                policy: PurchasePolicy::Unlimited,
                in_drop: Some(drop.clone().into()),
                ..Sale::draft(id.clone(), 10, now_ms() - 1_000, now_ms() + 3_600_000)
            };
            let mut plan = Timetable::default();
            change(&mut sale, &mut plan);
            (sale, plan)
        };
        let sales: Vec<_> = sale_ids.iter().map(sale).collect();
        self.servers.rows.sales.create_all(&[(Some(&drop), &sales)]).await.expect("create");
        sale_ids
    }
}
