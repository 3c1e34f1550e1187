// The payment method. Here a shop has Stripe, Alipay or WeChat Pay; this one takes every card and moves no money. It is the
// only thing of this example that is not real.
import { randomUUID } from 'node:crypto';
import { LanguageCode, PaymentMethodHandler } from '@vendure/core';

export const CARD = 'card';

/** The payment's id for seckill: with the provider before it, so that two providers never have the same one. */
export const paymentId = (transactionId: string) => `${CARD}:${transactionId}`;

export const card = new PaymentMethodHandler({
    code: CARD,
    description: [{ languageCode: LanguageCode.en, value: 'Card' }],
    args: {},
    createPayment: (_ctx, _order, amount) => ({ amount, state: 'Settled' as const, transactionId: randomUUID() }),
    settlePayment: () => ({ success: true }),
    // A real provider gets the payment's id as idempotency key, so that a repeat sends the money back once.
    createRefund: () => ({ state: 'Settled' as const, transactionId: randomUUID() }),
});
