// One order: what it is, its payments, and the two things that a person does to it: cancel, and mark money as sent back.

import { get, post } from './api.js';
import { confirm, toast } from './dialog.js';
import { field, h, say, show } from './dom.js';
import { guarded } from './roles.js';
import { count, has, price, t, time } from './words.js';

const KINDS = { UNPAID: 'warn', PAID: 'good', EXPIRED: '', CANCELLED: '' };
const MONEY = { APPLIED: 'good', REFUND_NEEDED: 'bad', REFUNDED: '' };

/** Where an order is; orders of sales without a payment step are nowhere but confirmed. */
export const stateBadge = (state) => h('span', { class: `badge ${KINDS[state] ?? ''}` }, t(state ? `order-${state}` : 'order-none'));

/** Why money has to go back. */
export const reasonWords = (reason) => (reason === null ? '–' : has(`refund-${reason}`) ? t(`refund-${reason}`) : reason);

/** Asks before money is marked as sent back; `done` comes after it. */
export function refundDialog(payment, done) {
  return confirm({
    title: t('refund-title', { payment: payment.payment_id }),
    body: h('div', { class: 'stackable' }, h('p', {}, t('refund-words', { amount: price(payment.amount, payment.currency) })), h('p', { class: 'quiet' }, reasonWords(payment.reason))),
    action: t('mark-refunded'),
    work: async () => {
      const marked = await post(`/orders/${payment.request_id}/refunded`, { payment_id: payment.payment_id });
      const words = marked.before ? 'refund-marked-before' : 'refund-marked';
      toast(t(words, { payment: payment.payment_id, at: marked.before ? time(Date.parse(marked.marked_at)) : '' }));
      done();
    },
  });
}

function cancelDialog(order, done) {
  const reason = h('textarea', { rows: 3, maxlength: 500, required: true });
  return confirm({
    title: t('cancel-title', { id: order.request_id }),
    body: h('div', { class: 'stackable' }, h('p', {}, t(order.state === 'PAID' ? 'cancel-paid-words' : 'cancel-words')), field('reason', t('reason-why'), reason, t('cancel-reason-hint'))),
    action: t('cancel-order'),
    danger: true,
    work: async () => {
      if (!reason.value.trim()) throw new Error(t('reason-needed'));
      done(await post(`/orders/${order.request_id}/cancel`, { reason: reason.value.trim() }), t('order-was-cancelled'));
    },
  });
}

function facts(order) {
  const when = (text) => (text ? time(Date.parse(text)) : '–');
  const fact = (key, ...content) => [h('dt', {}, t(key)), h('dd', {}, content)];
  return h('dl', { class: 'facts', id: 'order-facts' },
    fact('state', stateBadge(order.state), order.code ? [' ', h('code', { class: 'quiet' }, order.code)] : null),
    fact('since', when(order.state_at ?? order.created_at)),
    fact('sale', h('a', { href: `#/sale/${encodeURIComponent(order.sale_id)}` }, order.sale_id), ` · ${order.title}`),
    fact('buyer', order.user_id), fact('units', count(order.quantity)), fact('amount', price(order.amount, order.currency)),
    fact('ordered-at', when(order.created_at)), fact('pay-by', when(order.pay_by)));
}

function payments(rows, refunded) {
  const line = (payment) => h('tr', { data: { payment: payment.payment_id } },
    h('th', { scope: 'row' }, h('code', {}, payment.payment_id), h('div', { class: 'quiet small' }, time(Date.parse(payment.told_at)))),
    h('td', { 'data-label': t('amount'), class: 'num' }, price(payment.amount, payment.currency)),
    h('td', { 'data-label': t('state') }, h('span', { class: `badge ${MONEY[payment.state] ?? ''}` }, t(`money-${payment.state}`))),
    h('td', { 'data-label': t('reason') }, reasonWords(payment.reason)),
    h('td', { 'data-label': t('act') }, payment.state === 'REFUND_NEEDED' ? guarded('money', h('button', { type: 'button', on: { click: () => refundDialog(payment, refunded) } }, t('mark-refunded'))) : '–'));
  if (!rows.length) return h('p', { class: 'quiet' }, t('no-payments'));
  const head = ['payment', 'amount', 'state', 'reason', 'act'].map((key) => h('th', { scope: 'col' }, t(key)));
  return h('table', { class: 'stack', id: 'payments' }, h('caption', { class: 'visually-hidden' }, t('payments')), h('thead', {}, h('tr', {}, head)), h('tbody', {}, rows.map(line)));
}

export function orderView(id) {
  const problem = h('p', { class: 'note bad', role: 'alert', id: 'order-problem', hidden: true });
  const about = h('div', {});
  const money = h('div', {});
  const actions = h('div', { class: 'row', id: 'order-actions' });
  function take(found, said) {
    const { order } = found;
    problem.hidden = true;
    show(about, facts(order));
    show(money, payments(found.payments, load));
    // A cancelled order of a sale without a payment step has no state either; cancelling it again changes nothing.
    const stands = order.state === null || ['UNPAID', 'PAID'].includes(order.state);
    show(actions, stands ? guarded('operate or money', h('button', { type: 'button', class: 'danger', id: 'cancel-order', on: { click: () => cancelDialog(order, take) } }, t('cancel-order'))) : '');
    if (said) toast(said);
  }
  async function load() {
    try {
      take(await get(`/orders/${encodeURIComponent(id)}`));
    } catch (error) {
      say(problem, error.message);
      problem.hidden = false;
    }
  }
  load();
  return {
    title: `${t('order')} ${id}`,
    element: h('div', { class: 'view' }, h('p', {}, h('a', { href: '#/orders' }, `← ${t('orders')}`)), h('div', { class: 'spread' }, h('h1', {}, t('order'), ' ', h('code', {}, id)), h('button', { type: 'button', on: { click: load } }, t('refresh'))),
      problem, actions, h('section', { class: 'card pad' }, about), h('section', { class: 'card pad' }, h('h2', {}, t('payments')), money)),
  };
}
