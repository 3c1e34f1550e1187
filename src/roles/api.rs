//! The api role: P1 and P2 put together, with the tasks that keep them up to date.
//!
//! Input: the settings, handles on the servers, a bound listener. Output: tasks of this process. A crash leaves nothing
//! behind but what P1 and P2 say themselves.

use super::{CONNECT_GRACE, RoleError, Running, Servers};
use crate::config::Settings;
use crate::console::{self, Shop};
use crate::p1_entry::auth::Authenticator;
use crate::p1_entry::auto_warm::AutoWarm;
use crate::p1_entry::catalog::Catalog;
use crate::p1_entry::http::{self, Beside, Public};
use crate::p1_entry::known::{KeepKnown, Known};
use crate::p1_entry::limits::Limits;
use crate::p1_entry::orders::Orders;
use crate::p1_entry::overload::{Overload, Watch};
use crate::p1_entry::request_ids::RequestIds;
use crate::p1_entry::room::{KeepRooms, Rooms};
use crate::p1_entry::status::Statuses;
use crate::p1_entry::tokens::Tokens;
use crate::p2_reserve::{DurabilityGuard, Fence, Reserve, ReserveHandles};
use crate::runtime::PollInterval;
use crate::sales::SaleControl;
use std::collections::HashSet;
use std::net::TcpListener;
use std::sync::Arc;

impl Running {
    /// Puts the api role together and serves on `listener` once it is safe to.
    ///
    /// # Errors
    /// [`RoleError::Config`] when a key to check tokens with cannot be used.
    pub(super) fn serve_api(
        &mut self,
        settings: &Arc<Settings>,
        servers: Servers,
        listener: TcpListener,
        demo_shop: bool,
    ) -> Result<(), RoleError> {
        let mut beside: Vec<Beside> = vec![Arc::new(console::docs)];
        if demo_shop {
            beside.push(self.shop(settings, &listener)?);
        }
        let (s, stopper) = (settings.clone(), self.stopper.clone());
        let Servers { redis, db, .. } = servers;
        let auth = Authenticator::new(&s.auth).map_err(|error| RoleError::Config(vec![error.to_string()]))?;
        // Random, because two processes of one name would otherwise share a lease or a lock.
        let owner = format!("{}-{:016x}", s.node(), rand::random::<u64>());
        let shards = s.redis.shards;
        let guard = DurabilityGuard::new(redis.health.clone());
        let fence = Fence::new(redis.boot_fence.clone(), redis.sale_keys.clone(), db.clone(), guard.clone(), shards);
        let ids = RequestIds::start(redis.clone(), owner.clone(), stopper.clone());
        let known = Known::default();
        let overload = Overload::new(s.p1_entry.in_flight_max);
        let catalog = Catalog::new(redis.clone(), db.clone(), known.clone(), &s, &owner);
        let rooms = Rooms::start(redis.clone(), overload.clone(), &s.p1_entry, &stopper);
        self.spawn(KeepRooms { rooms: rooms.clone(), catalog: catalog.clone() }, KeepRooms::PACE, redis.clone());
        let orders = Orders {
            catalog,
            reserve: Reserve::new(ReserveHandles::of(&redis), fence, shards, &s.p2_reserve),
            guard: guard.clone(),
            tokens: Tokens::new(&s.p1_entry.token_secret, s.p1_entry.token_ttl_s),
            ids: ids.clone(),
            overload: overload.clone(),
            rooms,
            limits: Limits::start(&s.p1_entry, redis.clone(), shards, &stopper),
            redis: redis.clone(),
            shards,
        };
        let statuses = Statuses::start(redis.clone(), db.clone(), known.clone(), &s, &stopper);
        let public = Arc::new(Public::new(&s, auth, orders, statuses, db.clone()));
        self.spawn(KeepKnown::new(db.clone(), known), PollInterval::idle_ms(250), redis.clone());
        let watch = Watch::new(overload, redis.clone(), db.clone(), shards, &s.p1_entry);
        self.spawn(watch, PollInterval::idle_ms(100), redis.clone());
        let sale_control = SaleControl { redis: redis.clone(), db, shards, backlog_max: s.p1_entry.backlog_max };
        let ahead_ms = i64::try_from(s.p5_reconcile.warm_ahead_ms).unwrap_or(i64::MAX);
        let auto_warm =
            AutoWarm { sale_control, ahead_ms, told: HashSet::new(), look_after_at: std::time::Instant::now() };
        self.spawn(auto_warm, PollInterval::idle_ms(1_000), redis.clone());
        self.spawn(guard.clone(), PollInterval::idle_ms(1_000), redis.clone());
        self.tasks.spawn(async move {
            redis.wait_connected(CONNECT_GRACE).await;
            crate::health::wait_until_safe(&guard, &stopper).await;
            // A listening process is sent buyers at once; without request ids it could only turn them away.
            ids.wait_ready(CONNECT_GRACE, &stopper).await;
            if stopper.is_stopped() {
                return Ok(());
            }
            let server = http::serve(public, listener, &s.http, beside, stopper)
                .map_err(|error| RoleError::Ended(format!("http server: {error}")))?;
            server.await.map_err(|error| RoleError::Ended(format!("http server: {error}")))
        });
        Ok(())
    }

    /// The demo shop, if it may be.
    fn shop(&self, settings: &Settings, listener: &TcpListener) -> Result<Beside, RoleError> {
        let refused = |why: String| RoleError::Config(vec![why]);
        let address = listener.local_addr().map_err(|error| refused(format!("http.listen: {error}")))?;
        let shop = Shop::new(&settings.auth, address, self.stopper.clone()).map_err(|no| refused(no.to_string()))?;
        Ok(shop.beside())
    }
}
