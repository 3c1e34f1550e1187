//! Steps of an order by hand: paid, refunded, cancelled. Each is an act on record.

use crate::cli::failure::Failure;
use crate::cli::{context, output};
use crate::config::Layers;
use crate::domain::ids::RequestId;
use crate::domain::payment::PaymentState;
use crate::orders::forms::{CancelForm, PaymentForm, RefundedForm};
use crate::orders::rows::{Cancelled, PaymentAnswer, PaymentRecorded, RefundMark};
use crate::p6_fulfil::{self, OrderWork};
use std::path::Path;

pub(super) async fn paid(
    layers: &Layers,
    data_dir: &Path,
    request_id: RequestId,
    form: PaymentForm,
) -> Result<u8, Failure> {
    let payment = form.of(request_id)?;
    let settings = context::settings(layers, data_dir)?;
    let servers = context::servers(&settings).await?;
    let (context, actor) = (servers.fulfil_context(&settings), context::operator());
    let done = p6_fulfil::receive_payment(OrderWork { context: &context, request_id, actor: &actor }, &payment).await;
    servers.redis.quit().await;
    let PaymentAnswer { recorded, row } = done?;
    let before = if recorded == PaymentRecorded::Before { " (it was on record before)" } else { "" };
    if row.state == PaymentState::Applied {
        output::line(&format!("the order is paid{before}"));
        return Ok(0);
    }
    let reason = row.reason.unwrap_or_default();
    // Where another payment has the id that was reported, this one has another.
    Err(Failure::Failed(format!(
        "the payment is on record as {}, no order takes it: {reason}{before}; send the money back, then: seckill order refunded \
         {request_id} --payment-id {}",
        row.state.code(),
        row.payment_id
    )))
}

pub(super) async fn refunded(
    layers: &Layers,
    data_dir: &Path,
    request_id: RequestId,
    form: RefundedForm,
) -> Result<u8, Failure> {
    let payment_id = form.checked()?;
    let settings = context::settings(layers, data_dir)?;
    let servers = context::servers(&settings).await?;
    let (context, actor) = (servers.fulfil_context(&settings), context::operator());
    let done = p6_fulfil::refund_done(OrderWork { context: &context, request_id, actor: &actor }, &payment_id).await;
    servers.redis.quit().await;
    match done? {
        RefundMark::Refunded(_) => output::line("on record: the money went back"),
        RefundMark::Before(_) => output::line("it was on record before, nothing changed"),
        RefundMark::NotNeeded(_) => {
            return Err(Failure::Failed(format!(
                "this payment paid its order; cancel the order first: seckill order cancel {request_id} --reason …"
            )));
        }
        RefundMark::NoPayment => {
            return Err(Failure::Failed(format!(
                "order {request_id} has no payment {payment_id}; see seckill order show {request_id}"
            )));
        }
    }
    Ok(0)
}

pub(super) async fn cancel(
    layers: &Layers,
    data_dir: &Path,
    request_id: RequestId,
    form: CancelForm,
) -> Result<u8, Failure> {
    let reason = form.checked()?;
    let settings = context::settings(layers, data_dir)?;
    let servers = context::servers(&settings).await?;
    let (context, actor) = (servers.fulfil_context(&settings), context::operator());
    let work = OrderWork { context: &context, request_id, actor: &actor };
    let (cancelled, in_redis) = p6_fulfil::cancel_by_operator(work, &reason).await?;
    servers.redis.quit().await;
    let redis = if in_redis { "" } else { "; redis could not be given them yet, p5 does it" };
    match cancelled {
        Cancelled::Now(sale, units, refunds) => {
            output::line(&format!("cancelled; units that {sale} has to sell again: {units}{redis}"));
            for payment_id in refunds {
                output::line(&format!("payment {payment_id} has to go back; see seckill order refunds"));
            }
        }
        Cancelled::Before(_) => output::line(&format!("it was cancelled before, nothing changed{redis}")),
        Cancelled::Refused(_, state) => {
            let state = state.map_or("without a payment step", |state| state.code());
            return Err(Failure::Failed(format!("the order is {state}; its units are on sale again already")));
        }
        Cancelled::NoOrder => {
            return Err(Failure::Failed(format!(
                "request {request_id} is no order; see seckill order show {request_id}"
            )));
        }
    }
    Ok(0)
}
