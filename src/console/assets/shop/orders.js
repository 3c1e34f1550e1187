// The visitor's orders: the one that was just bought, with its deadline, and the list of all. An unpaid one can be paid or cancelled.

import { call } from './buy.js';
import { h, say, show } from './dom.js';
import { has, price, t, time } from './words.js';

const KINDS = { UNPAID: 'warn', PAID: 'good', EXPIRED: 'bad', CANCELLED: 'bad' };

/** Time that is left, as a clock. */
export function countdown(ms) {
  const seconds = Math.max(0, Math.floor(ms / 1000));
  const pad = (n) => String(n).padStart(2, '0');
  const days = Math.floor(seconds / 86_400);
  const clock = `${pad(Math.floor(seconds / 3600) % 24)}:${pad(Math.floor(seconds / 60) % 60)}:${pad(seconds % 60)}`;
  return days ? `${t('days', { n: days })} ${clock}` : clock;
}

/** The step of the payment, below the steps of the purchase. */
export function paymentStep(order) {
  const kind = { UNPAID: 'now', PAID: 'done', EXPIRED: 'failed', CANCELLED: 'failed' }[order?.state] ?? '';
  return h('li', { class: kind, id: order?.state ? `order-${order.state.toLowerCase()}` : null }, t(order?.state ? `order-${order.state}` : 'step-payment'));
}

/** What can be done with an unpaid order; `told` gets a sentence when it did not go as wanted, else nothing. */
function acts(order, token, told, ids = {}) {
  const button = (name, words, kind, work) => {
    const one = h('button', { type: 'button', class: kind, id: ids[name] }, words);
    one.addEventListener('click', async () => {
      one.disabled = true;
      told(await work());
      one.disabled = false;
    });
    return one;
  };
  const pay = async () => {
    const answer = await call('POST', '/shop/v1/payments', { token, body: { request_id: order.request_id } });
    if (answer.status !== 200) return t('not-done', { why: answer.body.detail ?? answer.body.title ?? String(answer.status) });
    return answer.body.code === 'P6-F1' ? null : t('money-back', { why: has(`why-${answer.body.reason}`) ? t(`why-${answer.body.reason}`) : answer.body.reason });
  };
  const cancel = async () => {
    const answer = await call('DELETE', `/v1/orders/${order.request_id}`, { token });
    return answer.status === 200 ? null : t('not-done', { why: answer.body.detail ?? answer.body.title ?? String(answer.status) });
  };
  return [button('pay', t('pay', { amount: price(order.amount, order.currency) }), 'primary', pay), button('cancel', t('cancel-order'), '', cancel)];
}

/** The box with the deadline and the two buttons. `update(state)`, then `tick(nowMs)` four times a second. */
export function paymentBox(hurry) {
  const deadline = h('strong', { id: 'deadline', class: 'num' });
  const words = h('span', { class: 'quiet' });
  const buttons = h('div', { class: 'row' });
  const problem = h('p', { class: 'note bad', role: 'alert', id: 'order-problem', hidden: true });
  const box = h('div', { class: 'pay', id: 'payment', hidden: true }, h('p', { class: 'clock' }, words, deadline), buttons);
  let order = null;
  function complain(sentence) {
    say(problem, sentence ?? '');
    problem.hidden = !sentence;
  }
  function told(sentence) {
    complain(sentence);
    hurry();
  }
  return {
    element: h('div', { class: 'pay-part' }, box, problem),
    told,
    update({ order: next, visitor }) {
      if (next?.request_id !== order?.request_id) complain(null);
      // The buttons stay as they are while a person aims at them.
      if (next?.state === 'UNPAID' && next.request_id !== order?.request_id) show(buttons, acts(next, visitor.token, told, { pay: 'pay', cancel: 'cancel-order' }));
      order = next;
      box.hidden = order?.state !== 'UNPAID';
    },
    tick(nowMs) {
      if (box.hidden) return;
      const left = Date.parse(order.pay_by) - nowMs;
      say(words, left > 0 ? t('pay-within') : t('pay-late'));
      say(deadline, countdown(left));
    },
  };
}

/** All orders of the visitor. `update(state)` draws them when something changed. */
export function orderList(told) {
  const list = h('ul', { class: 'orders', id: 'orders' });
  let drawn = '';
  function row(order, current, token) {
    const state = order.state ?? 'CONFIRMED';
    return h('li', { data: { request: order.request_id, state } },
      h('div', { class: 'spread' }, h('strong', {}, order.title), h('span', { class: `badge ${KINDS[state] ?? 'good'}` }, t(`state-${state}`))),
      h('div', { class: 'small quiet num' }, `${price(order.amount, order.currency)} · ${time(Date.parse(order.created_at))}`),
      h('code', { class: 'small quiet' }, order.request_id),
      state === 'UNPAID' && order.request_id !== current ? h('div', { class: 'row' }, acts(order, token, told)) : null);
  }
  return {
    element: h('section', { class: 'card panel' }, h('h2', {}, t('your-orders')), list),
    update({ orders, order, visitor }) {
      const next = JSON.stringify([orders, order?.request_id]);
      if (next === drawn) return;
      drawn = next;
      show(list, orders.length ? orders.map((one) => row(one, order?.request_id, visitor.token)) : h('li', { class: 'quiet' }, t('no-orders')));
    },
  };
}
