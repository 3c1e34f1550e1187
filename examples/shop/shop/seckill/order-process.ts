// The shop's side of an order moves: a report to seckill is due. In the transaction of the move, so that neither is without the
// other.
import { Injector, OrderProcess, OrderState } from '@vendure/core';
import { Tasks } from './tasks';

let tasks: Tasks;

export const orderProcess: OrderProcess<OrderState> = {
    init(injector: Injector) {
        tasks = injector.get(Tasks);
    },
    async onTransitionEnd(_from, to, { ctx, order }) {
        const { seckillRequest: request, seckillState: state } = order.customFields;
        if (!request) return;
        if (to === 'PaymentSettled') await tasks.add(ctx, 'paid', `paid:${request}`, { request });
        // Cancelled by the shop's support, not because seckill said so: its units go back on sale.
        const bySeckill = state === 'EXPIRED' || state === 'CANCELLED';
        if (to === 'Cancelled' && !bySeckill) await tasks.add(ctx, 'cancel', `cancel:${request}`, { request });
    },
};
