// Sales: the list with how far each has come.

import { serverNow } from './api.js';
import { h, show } from './dom.js';
import { opener, reading, table } from './list.js';
import { createForm } from './sale-forms.js';
import { count, price, t, time } from './words.js';

/**
 * A badge for where a sale is in its life; `remaining` are the units that are left in Redis. When they are unknown, those that the
 * database has left count.
 */
export function statusBadge(sale, state, remaining) {
  const kinds = { draft: '', warmed: 'good', paused: 'warn', closed: '' };
  const frozen = state === 'frozen' || state === null;
  if (sale.status === 'warmed' && frozen) return h('span', { class: 'badge bad' }, t(state === null ? 'status-keys-missing' : 'status-frozen'));
  const now = serverNow();
  let word = sale.status;
  if (word === 'warmed') word = now < sale.starts_at_ms ? 'soon' : now >= sale.ends_at_ms ? 'over' : 'selling';
  if (word === 'selling' && (remaining ?? sale.stock) === 0) return h('span', { class: 'badge blue' }, t('status-sold-out'));
  return h('span', { class: `badge ${kinds[sale.status]}` }, t(`status-${word}`));
}

/** A badge that says that buyers do not see the sale; nothing when they do. */
export const hiddenBadge = (sale) => (sale.hidden ? h('span', { class: 'badge' }, t('hidden')) : null);

/** Units on their way: admitted, and neither an order that stands, nor failed, nor brought back by an order that ended. */
export function onTheWay({ admitted, landed, failed, returned }) {
  const known = [admitted, returned].every((n) => n !== null && n !== undefined);
  return known ? Math.max(0, admitted - landed - failed - returned) : null;
}

/** The bar of a sale: landed, on its way, failed, left. Units. */
export function burnDown(flow) {
  const { granted, landed, failed } = flow;
  const way = onTheWay(flow);
  const left = Math.max(0, granted - landed - failed - (way ?? 0));
  const parts = [['landed', landed], ['way', way ?? 0], ['failed', failed], ['left', left]];
  const bar = h('div', { class: 'burn', role: 'img', 'aria-label': t('burn-label', { landed: count(landed), way: count(way), failed: count(failed), left: count(left) }) },
    parts.map(([name, n]) => {
      const part = h('span', { class: `burn-${name}` });
      part.style.flexGrow = String(n);
      return part;
    }));
  return bar;
}

/** The columns of a table of sales. */
export const SALE_COLUMNS = ['sale', 'status', 'sold', 'limit', 'price', 'window'];

/** A row of such a table. */
export function saleRow(sale, flow) {
  const cells = flow ?? { granted: sale.granted, admitted: null, landed: sale.granted - sale.stock, failed: 0 };
  const cell = (label, ...content) => h('td', { 'data-label': label }, content);
  return h('tr', { data: { sale: sale.sale_id } },
    h('th', { scope: 'row' }, h('a', { href: `#/sale/${encodeURIComponent(sale.sale_id)}` }, sale.sale_id), h('div', { class: 'quiet small' }, sale.title)),
    cell(t('status'), statusBadge(sale, flow ? flow.state : undefined, flow?.remaining), ' ', hiddenBadge(sale)),
    cell(t('sold'), burnDown(cells), h('div', { class: 'small num' }, `${count(cells.landed)} / ${count(cells.granted)}`)),
    cell(t('limit'), sale.policy === null ? t('no-limit') : count(sale.policy)),
    cell(t('price'), price(sale.price_cents, sale.currency)),
    cell(t('window'), h('div', { class: 'small' }, time(sale.starts_at_ms)), h('div', { class: 'small' }, time(sale.ends_at_ms))));
}

export function salesView() {
  const body = h('tbody', { id: 'sales' });
  const form = createForm((id) => { location.hash = `#/sale/${encodeURIComponent(id)}`; });
  const toggle = opener('new-sale', form);
  let flows = {};
  let sales = [];
  function draw() {
    // A person in the middle of the table keeps the place.
    if (body.contains(document.activeElement)) return;
    show(body, sales.length ? sales.map((sale) => saleRow(sale, flows[sale.sale_id])) : h('tr', {}, h('td', { colspan: SALE_COLUMNS.length, class: 'quiet' }, t('no-sales'))));
  }
  const read = reading('/sales', (answer) => {
    sales = answer.sales;
    draw();
  });
  return {
    title: t('sales'),
    element: h('div', { class: 'view' }, h('div', { class: 'spread' }, h('h1', {}, t('sales')), toggle), form, read.problem, table(t('sales'), SALE_COLUMNS, body)),
    close: read.close,
    update({ history }) {
      flows = history.at(-1)?.perSale ?? {};
      draw();
    },
  };
}
