// What the events of seckill do to the shop's orders, and what the shop's orders report to seckill.
import { Injectable, OnApplicationBootstrap } from '@nestjs/common';
import {
    CustomerService, ExternalAuthenticationService, isGraphQlErrorResult, Order, OrderService, Payment,
    ProductVariant, RequestContext, TransactionalConnection,
} from '@vendure/core';
import { IsNull, Not } from 'typeorm';
import { CARD, paymentId } from '../card';
import { STRATEGY } from '../sign-in';
import { seckill } from './api';
import { Tasks } from './tasks';

/** `data` of an order event: docs/asyncapi.yaml. */
interface OrderEvent {
    rid: string; sale: string; user: string; qty: number; status: string; reason?: string;
    amount: number; currency: string; version: number; payment_id: string;
}

/** Vendure returns most errors; here each one undoes the transaction. */
function ok<T>(result: T): Exclude<T, { errorCode: unknown }> {
    if (isGraphQlErrorResult(result as any)) throw new Error(`${(result as any).errorCode}: ${(result as any).message}`);
    return result as Exclude<T, { errorCode: unknown }>;
}

@Injectable()
export class SeckillOrders implements OnApplicationBootstrap {
    constructor(
        private connection: TransactionalConnection,
        private orders: OrderService,
        private customers: CustomerService,
        private accounts: ExternalAuthenticationService,
        private tasks: Tasks,
    ) {}

    onApplicationBootstrap() {
        this.tasks.on('event', (ctx, event: OrderEvent) => this.apply(ctx, event));
        this.tasks.on('paid', (ctx, { request }) => this.reportPaid(ctx, request));
        this.tasks.on('cancel', async (_ctx, { request }) => { await seckill.cancel(request, 'cancelled in the shop'); });
        this.tasks.on('refund', (ctx, { request, payment }) => this.refund(ctx, request, payment));
        this.tasks.on('refunded', async (_ctx, { request, payment }) => { await seckill.refunded(request, payment); });
    }

    /** The order of a request, locked until the end of the transaction: a payment and an expiry do not pass each other. */
    async locked(ctx: RequestContext, request: string): Promise<Order | undefined> {
        const row = await this.connection.getRepository(ctx, Order).createQueryBuilder('o').setLock('pessimistic_write')
            .where('o.customFields.seckillRequest = :request', { request }).getOne();
        return row ? this.orders.findOne(ctx, row.id, ['customer.user', 'lines', 'lines.productVariant', 'surcharges', 'shippingLines']) : undefined;
    }

    /** What the signed-in customer bought, newest first. */
    async ofUser(ctx: RequestContext): Promise<Order[]> {
        return this.connection.getRepository(ctx, Order).find({
            where: { customer: { user: { id: ctx.activeUserId } }, customFields: { seckillRequest: Not(IsNull()) } },
            order: { id: 'DESC' },
            relations: { payments: { refunds: true }, lines: true, surcharges: true, shippingLines: true },
        });
    }

    /** Pays the whole order with the card. */
    async pay(ctx: RequestContext, order: Order): Promise<Order> {
        return ok(await this.orders.addPaymentToOrder(ctx, order.id, { method: CARD, metadata: {} }));
    }

    private async apply(ctx: RequestContext, event: OrderEvent): Promise<void> {
        // The buyer's page says that it failed. There is no order, and nothing to undo.
        if (event.status === 'FAILED') return;
        if (event.status === 'REFUND_NEEDED') return this.wantRefund(ctx, event.rid, event.payment_id);
        // Events come in any order: each one knows enough to make the order.
        const order = (await this.locked(ctx, event.rid)) ?? (await this.create(ctx, event));
        if (event.version <= (order.customFields.seckillVersion ?? 0)) return;
        const state = event.status === 'CONFIRMED' ? 'UNPAID' : event.status;
        await this.orders.updateCustomFields(ctx, order.id, { seckillState: state, seckillVersion: event.version });
        // Final there, so final here. If it was paid, `order.refund_needed` or the answer to `paid` sends the money back.
        if ((state === 'EXPIRED' || state === 'CANCELLED') && order.state !== 'Cancelled') {
            ok(await this.orders.cancelOrder(ctx, { orderId: order.id, reason: state }));
        }
    }

    private async create(ctx: RequestContext, event: OrderEvent): Promise<Order> {
        const user = await this.accounts.findCustomerUser(ctx, STRATEGY, event.user);
        // Who buys with a token and never opens the shop signs in later: the task waits for that.
        if (!user) throw new Error(`no customer ${event.user} yet`);
        const customer = (await this.customers.findOneByUserId(ctx, user.id))!;
        const variant = await this.connection.getRepository(ctx, ProductVariant)
            .findOneOrFail({ where: { customFields: { seckillSale: event.sale } } });
        const { id } = await this.orders.createDraft(ctx);
        await this.orders.addCustomerToOrder(ctx, id, customer);
        ok(await this.orders.addItemToOrder(ctx, id, variant.id, event.qty));
        await this.orders.updateCustomFields(ctx, id, { seckillRequest: event.rid });
        const order = ok(await this.orders.transitionToState(ctx, id, 'ArrangingPayment')) as Order;
        if (order.totalWithTax !== event.amount || order.currencyCode !== event.currency) {
            throw new Error(`${event.rid} costs ${event.amount} there and ${order.totalWithTax} here: align the prices`);
        }
        return order;
    }

    private async paymentsOf(ctx: RequestContext, request: string): Promise<{ order: Order; payments: Payment[] }> {
        const order = await this.locked(ctx, request);
        if (!order) throw new Error(`no order for ${request}`);
        return { order, payments: await this.orders.getOrderPayments(ctx, order.id) };
    }

    private async reportPaid(ctx: RequestContext, request: string): Promise<void> {
        const { order, payments } = await this.paymentsOf(ctx, request);
        for (const payment of payments.filter((each) => each.state === 'Settled')) {
            const id = paymentId(payment.transactionId);
            const answer = await seckill.paid(request, id, payment.amount, order.currencyCode);
            // Too late: the unit is on sale again, and this money has to go back. An event says the same; it is one refund.
            if (answer.code === 'P6-F4') await this.wantRefund(ctx, request, id);
        }
    }

    private wantRefund(ctx: RequestContext, request: string, payment: string): Promise<void> {
        return this.tasks.add(ctx, 'refund', `refund:${request}:${payment}`, { request, payment });
    }

    private async refund(ctx: RequestContext, request: string, id: string): Promise<void> {
        const { payments } = await this.paymentsOf(ctx, request);
        const payment = payments.find((each) => paymentId(each.transactionId) === id);
        // E.g. PAYMENT_ID_TAKEN: a person has to see what the provider has. The task stays, with this as its error.
        if (!payment) throw new Error(`${request} has no payment ${id}: see docs/operations.md, Payments and deadlines`);
        const { amount } = payment;
        const lines = { lines: [], shipping: 0, adjustment: 0 };
        ok(await this.orders.refundOrder(ctx, { paymentId: payment.id, amount, reason: 'seckill', ...lines }));
        await this.tasks.add(ctx, 'refunded', `refunded:${request}:${id}`, { request, payment: id });
    }
}
