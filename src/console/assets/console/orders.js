// Orders: find them by sale, buyer, state and time, and the money that has to go back.

import { file, get } from './api.js';
import { field, h, say, show } from './dom.js';
import { reasonWords, refundDialog, stateBadge } from './order.js';
import { guarded } from './roles.js';
import { saveButton } from './save.js';
import { count, price, t, time, timeZone } from './words.js';

const PAGE = 50;
const STATES = ['UNPAID', 'PAID', 'EXPIRED', 'CANCELLED'];
/** As long as the server lets an export take. */
const EXPORT_TIMEOUT_MS = 3_600_000;

/** Address of the page of one order. */
export const orderLink = (requestId) => `#/order/${encodeURIComponent(requestId)}`;

function row(order) {
  const cell = (key, ...content) => h('td', { 'data-label': t(key) }, content);
  return h('tr', { data: { request: order.request_id } },
    h('th', { scope: 'row' }, h('a', { href: orderLink(order.request_id) }, h('code', {}, order.request_id)), h('div', { class: 'quiet small' }, time(Date.parse(order.created_at)))),
    cell('state', stateBadge(order.state)),
    cell('sale', h('a', { href: `#/sale/${encodeURIComponent(order.sale_id)}` }, order.sale_id), h('div', { class: 'quiet small' }, order.title)),
    cell('buyer', order.user_id),
    cell('amount', h('span', { class: 'num' }, price(order.amount, order.currency)), h('div', { class: 'quiet small' }, t('n-units', { n: count(order.quantity) }))),
    cell('pay-by', order.pay_by ? time(Date.parse(order.pay_by)) : '–'));
}

/** Saves all orders that the filter finds, a line of JSON each. */
const exportButton = (query) => saveButton({ id: 'export-orders', words: 'export-orders', name: 'orders.ndjson', blob: () => file(`/orders/export?${query()}`, EXPORT_TIMEOUT_MS) });

function finder(filter, find) {
  const text = (value, props) => h('input', { type: 'text', autocomplete: 'off', spellcheck: 'false', value, ...props });
  const inputs = {
    sale: text(filter.sale, { maxlength: 64 }),
    buyer: text('', { maxlength: 64 }),
    state: h('select', {}, ['', ...STATES].map((state) => h('option', { value: state }, t(state ? `order-${state}` : 'all')))),
    from: h('input', { type: 'datetime-local' }),
    to: h('input', { type: 'datetime-local' }),
  };
  const id = text('', { maxlength: 19, inputmode: 'numeric', pattern: '[1-9][0-9]{0,18}' });
  const form = h('form', { class: 'card pad form', id: 'find-orders' },
    h('div', { class: 'grid' }, field('find-sale', t('sale-id'), inputs.sale), field('find-buyer', t('buyer'), inputs.buyer), field('find-state', t('state'), inputs.state, t('find-state-hint')),
      field('find-from', t('accepted-from'), inputs.from, t('time-zone', { zone: timeZone() })), field('find-to', t('accepted-to'), inputs.to, t('time-zone', { zone: timeZone() })), field('find-id', t('request-id'), id, t('find-id-hint'))),
    h('div', { class: 'row' }, h('button', { type: 'submit', class: 'primary', id: 'find' }, t('find')), exportButton(() => query())));
  form.addEventListener('submit', (event) => {
    event.preventDefault();
    if (id.value.trim()) {
      location.hash = orderLink(id.value.trim());
      return;
    }
    find();
  });
  const query = () => {
    const asked = new URLSearchParams();
    for (const name of ['sale', 'buyer', 'state']) if (inputs[name].value.trim()) asked.set(name, inputs[name].value.trim());
    for (const name of ['from', 'to']) if (inputs[name].value) asked.set(name, new Date(inputs[name].value).toISOString());
    return asked;
  };
  return { form, query };
}

/** Payments whose money has to go back, oldest first. */
function refundsCard() {
  const body = h('tbody', { id: 'refunds' });
  const badge = h('span', { class: 'badge', id: 'refunds-count' }, '–');
  const problem = h('p', { class: 'note bad', role: 'alert', hidden: true });
  const more = h('button', { type: 'button', id: 'more-refunds', hidden: true }, t('more'));
  let rows = [];
  let next = null;
  function line(payment) {
    const button = guarded('money', h('button', { type: 'button', on: { click: () => refundDialog(payment, () => load()) } }, t('mark-refunded')));
    return h('tr', { data: { payment: payment.payment_id } },
      h('th', { scope: 'row' }, h('code', {}, payment.payment_id), h('div', { class: 'quiet small' }, time(Date.parse(payment.told_at)))),
      h('td', { 'data-label': t('request') }, h('a', { href: orderLink(payment.request_id) }, h('code', {}, payment.request_id))),
      h('td', { 'data-label': t('amount'), class: 'num' }, price(payment.amount, payment.currency)),
      h('td', { 'data-label': t('reason') }, reasonWords(payment.reason)),
      h('td', { 'data-label': t('act') }, button));
  }
  async function load(cursor) {
    more.disabled = true;
    try {
      const page = await get(`/refunds?${new URLSearchParams({ limit: String(PAGE), ...(cursor ? { cursor } : {}) })}`);
      rows = cursor ? [...rows, ...page.payments] : page.payments;
      next = page.next;
      problem.hidden = true;
      more.hidden = next === null;
      say(badge, count(page.count));
      badge.className = `badge ${page.count ? 'bad' : 'good'}`;
      show(body, rows.length ? rows.map(line) : h('tr', {}, h('td', { colspan: 5, class: 'quiet empty' }, `✓ ${t('no-refunds')}`)));
    } catch (error) {
      say(problem, error.message);
      problem.hidden = false;
    }
    more.disabled = false;
  }
  more.addEventListener('click', () => load(next));
  const head = ['payment', 'request', 'amount', 'reason', 'act'].map((key) => h('th', { scope: 'col' }, t(key)));
  return {
    load,
    element: h('section', { class: 'card pad' }, h('div', { class: 'spread' }, h('h2', {}, t('refunds'), ' ', badge)), h('p', { class: 'quiet' }, t('refunds-words')), problem,
      h('table', { class: 'stack' }, h('caption', { class: 'visually-hidden' }, t('refunds')), h('thead', {}, h('tr', {}, head)), body), h('div', { class: 'row' }, more)),
  };
}

export function ordersView(argument) {
  const body = h('tbody', { id: 'orders' });
  const problem = h('p', { class: 'note bad', role: 'alert', id: 'orders-problem', hidden: true });
  const more = h('button', { type: 'button', id: 'more-orders', hidden: true }, t('more'));
  const refunds = refundsCard();
  let rows = [];
  let asked = null;
  let next = null;
  // Only the answer of the last question is shown.
  let turn = 0;
  const { form, query } = finder({ sale: argument }, () => load(query()));
  async function load(wanted, cursor) {
    turn += 1;
    const mine = turn;
    asked = wanted;
    more.disabled = true;
    try {
      const page = await get(`/orders?limit=${PAGE}&${cursor ? `${wanted}&cursor=${cursor}` : wanted}`);
      if (mine !== turn) return;
      rows = cursor ? [...rows, ...page.orders] : page.orders;
      next = page.next;
      problem.hidden = true;
      more.hidden = next === null;
      show(body, rows.length ? rows.map(row) : h('tr', {}, h('td', { colspan: 6, class: 'quiet empty' }, t('no-such-orders'))));
    } catch (error) {
      if (mine !== turn) return;
      say(problem, error.message);
      problem.hidden = false;
    }
    more.disabled = false;
  }
  more.addEventListener('click', () => load(asked, next));
  load(query());
  refunds.load();
  const head = ['request', 'state', 'sale', 'buyer', 'amount', 'pay-by'].map((key) => h('th', { scope: 'col' }, t(key)));
  return {
    title: t('orders'),
    element: h('div', { class: 'view' }, h('h1', {}, t('orders')), h('p', { class: 'quiet' }, t('orders-words')), form, problem,
      h('div', { class: 'card' }, h('table', { class: 'stack' }, h('caption', { class: 'visually-hidden' }, t('orders')), h('thead', {}, h('tr', {}, head)), body)), h('div', { class: 'row' }, more), refunds.element),
  };
}
