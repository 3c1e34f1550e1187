// The calls of the shop's backend to seckill's admin API. Each may be repeated: the ids decide, not the number of calls.
import { settings } from '../settings';

const DEADLINE_MS = 5_000;

/** What became of a payment. P6-F1: the order is paid. P6-F4: the money has to go back, and `reason` says why. */
export interface PaidAnswer { code: 'P6-F1' | 'P6-F4'; reason?: string | null }

/** Anything but 200 and the named other statuses throws, and the task is tried again. */
async function post(path: string, body: object, alsoFine: number[] = []): Promise<unknown> {
    const response = await fetch(`${settings.seckillAdmin}/admin/v1/orders/${path}`, {
        method: 'POST',
        headers: { authorization: `Bearer ${settings.seckillToken}`, 'content-type': 'application/json' },
        body: JSON.stringify(body),
        signal: AbortSignal.timeout(DEADLINE_MS),
    });
    const text = await response.text();
    if (!response.ok && !alsoFine.includes(response.status)) throw new Error(`${path}: ${response.status} ${text}`);
    return JSON.parse(text);
}

export const seckill = {
    paid: (request: string, payment_id: string, amount: number, currency: string) =>
        post(`${request}/paid`, { payment_id, amount, currency }) as Promise<PaidAnswer>,
    refunded: (request: string, payment_id: string) => post(`${request}/refunded`, { payment_id }),
    /** 409: it has expired meanwhile, which leaves nothing to cancel. */
    cancel: (request: string, reason: string) => post(`${request}/cancel`, { reason }, [409]),
};
