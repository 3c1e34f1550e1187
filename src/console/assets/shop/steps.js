// What happened to the purchase, step by step, and to its order.

import { h } from './dom.js';
import { paymentStep } from './orders.js';
import { count, t } from './words.js';

/** The list of the steps of `purchase`; `bought` is its order, if there is one. */
export function steps(purchase, bought) {
  if (!purchase) return [h('li', {}, t('nothing-yet'))];
  const { step, requestId, detail, why, reason, tookMs } = purchase;
  const order = ['token', 'queued', 'final'];
  const reached = { place: -1, token: 0, asking: 1, unknown: 1, queued: 2, confirmed: 3, failed: 3, refused: -2 }[step];
  const small = (text) => (text ? h('small', {}, text) : null);
  const items = [];
  if (step === 'place') items.push(h('li', { class: 'now' }, t('step-place'), small(detail)));
  if (step === 'refused') return [...items, h('li', { class: 'failed', id: 'refused' }, t('step-refused', { why }))];
  for (const [at, name] of order.entries()) {
    // An offer needs no token.
    if (name === 'token' && purchase.isOffer) continue;
    const kind = reached > at ? 'done' : reached === at ? 'now' : '';
    if (name === 'final' && step === 'confirmed') items.push(h('li', { class: 'done', id: 'confirmed' }, t('step-confirmed'), small(tookMs ? t('ms-later', { ms: count(tookMs) }) : '')));
    else if (name === 'final' && step === 'failed') items.push(h('li', { class: 'failed', id: 'failed' }, t('step-failed', { reason: t(`reason-${reason}`) })));
    else items.push(h('li', { class: kind }, t(`step-${name}`), small(kind === 'now' ? detail : name === 'queued' && requestId && reached > 1 ? t('request-id', { id: requestId }) : '')));
  }
  if (purchase.pays && step !== 'failed') items.push(paymentStep(bought));
  return items;
}
