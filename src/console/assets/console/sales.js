// Sales: the list with how far each has come, and the form for a new one.

import { get, post } from './api.js';
import { toast } from './dialog.js';
import { check, field, h, say, show } from './dom.js';
import { count, digits, price, t, time } from './words.js';

const EVERY_MS = 3000;

/** A badge for where a sale is in its life; `remaining` are the units that are left in Redis, when they are known. */
export function statusBadge(sale, state, remaining) {
  const kinds = { draft: '', warmed: 'good', paused: 'warn', closed: '' };
  const frozen = state === 'frozen' || state === null;
  if (sale.status === 'warmed' && frozen) return h('span', { class: 'badge bad' }, t(state === null ? 'status-keys-missing' : 'status-frozen'));
  const now = Date.now();
  let word = sale.status;
  if (word === 'warmed') word = now < sale.starts_at_ms ? 'soon' : now >= sale.ends_at_ms ? 'over' : 'selling';
  if (word === 'selling' && remaining === 0) return h('span', { class: 'badge blue' }, t('status-sold-out'));
  return h('span', { class: `badge ${kinds[sale.status]}` }, t(`status-${word}`));
}

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

function row(sale, flow) {
  const cells = flow ?? { granted: sale.granted, admitted: null, landed: sale.granted - sale.stock, failed: 0 };
  const cell = (label, ...content) => h('td', { 'data-label': label }, content);
  return h('tr', { data: { sale: sale.sale_id } },
    h('th', { scope: 'row' }, h('a', { href: `#/sale/${encodeURIComponent(sale.sale_id)}` }, sale.sale_id), h('div', { class: 'quiet small' }, sale.title)),
    cell(t('status'), statusBadge(sale, flow ? flow.state : undefined, flow?.remaining)),
    cell(t('sold'), burnDown(cells), h('div', { class: 'small num' }, `${count(cells.landed)} / ${count(cells.granted)}`)),
    cell(t('limit'), sale.policy === null ? t('no-limit') : count(sale.policy)),
    cell(t('price'), price(sale.price_cents, sale.currency)),
    cell(t('window'), h('div', { class: 'small' }, time(sale.starts_at_ms)), h('div', { class: 'small' }, time(sale.ends_at_ms))));
}

/** Local date and time for an input, without seconds. */
export function local(date) {
  return new Date(date.getTime() - date.getTimezoneOffset() * 60_000).toISOString().slice(0, 16);
}

function createForm(created) {
  const text = (props) => h('input', { type: 'text', required: true, ...props });
  const number = (props) => h('input', { type: 'number', step: 1, inputmode: 'numeric', ...props });
  const now = new Date();
  const inputs = {
    id: text({ maxlength: 64, pattern: '[A-Za-z0-9_\\-]{1,64}', autocomplete: 'off', spellcheck: 'false' }),
    title: text({ maxlength: 200 }),
    product: text({ maxlength: 64 }),
    stock: number({ required: true, min: 0, max: 1_000_000_000, value: 100 }),
    limit: number({ min: 1, value: 1 }),
    price: h('input', { type: 'number', min: 0, step: 0.01, value: '0.00', inputmode: 'decimal' }),
    currency: text({ maxlength: 3, value: 'CNY', pattern: '[A-Z]{3}' }),
    starts: h('input', { type: 'datetime-local', required: true, value: local(now) }),
    payWithin: number({ min: 1, max: 2_592_000 }),
    payGrace: number({ min: 0, max: 86_400, value: 30 }),
    ends: h('input', { type: 'datetime-local', required: true, value: local(new Date(now.getTime() + 86_400_000)) }),
  };
  const token = check('new-token', t('token-required'), false);
  const room = check('new-room', t('waiting-room'), false);
  const returns = check('new-returns', t('limit-returns'), false);
  const terms = () => {
    if (inputs.payWithin.value === '') return { pay_within_s: null };
    const grace = inputs.payGrace.value === '' ? {} : { pay_grace_s: Number(inputs.payGrace.value) };
    return { pay_within_s: Number(inputs.payWithin.value), ...grace, limit_returns: returns.box.checked };
  };
  // Without a payment step there is nothing to be lenient about.
  const withTerms = () => { for (const one of [inputs.payGrace, returns.box]) one.disabled = inputs.payWithin.value === ''; };
  inputs.payWithin.addEventListener('input', withTerms);
  withTerms();
  inputs.currency.addEventListener('input', () => { inputs.price.step = String(10 ** -digits(inputs.currency.value)); });
  const warm = check('new-warm', t('warm-at-once'), false);
  const problem = h('p', { class: 'note bad', role: 'alert', id: 'create-problem', hidden: true });
  const go = h('button', { type: 'submit', class: 'primary', id: 'create' }, t('create'));
  const form = h('form', { class: 'card pad form', id: 'create-form' },
    h('h2', {}, t('new-sale')),
    h('div', { class: 'grid' },
      field('new-id', t('sale-id'), inputs.id, t('sale-id-hint')), field('new-title', t('sale-title'), inputs.title, t('sale-title-hint')),
      field('new-product', t('product'), inputs.product), field('new-stock', t('stock'), inputs.stock),
      field('new-limit', t('limit-each'), inputs.limit, t('limit-hint')), field('new-price', t('price'), inputs.price),
      field('new-currency', t('currency'), inputs.currency),
      field('new-starts', t('starts'), inputs.starts), field('new-ends', t('ends'), inputs.ends),
      field('new-pay-within', t('pay-within'), inputs.payWithin, t('pay-within-hint')), field('new-pay-grace', t('pay-grace'), inputs.payGrace, t('pay-grace-hint'))),
    h('div', { class: 'row' }, token.element, room.element, returns.element, warm.element), problem, h('div', { class: 'row' }, go));
  form.addEventListener('submit', async (event) => {
    event.preventDefault();
    go.disabled = true;
    problem.hidden = true;
    const body = {
      id: inputs.id.value, title: inputs.title.value, product: inputs.product.value, stock: Number(inputs.stock.value),
      limit: inputs.limit.value === '' ? null : Number(inputs.limit.value),
      price_cents: Math.round(Number(inputs.price.value) * 10 ** digits(inputs.currency.value)), currency: inputs.currency.value,
      starts_at: new Date(inputs.starts.value).toISOString(), ends_at: new Date(inputs.ends.value).toISOString(),
      ...terms(), token_required: token.box.checked, waiting_room: room.box.checked, warm: warm.box.checked,
    };
    try {
      await post('/sales', body);
      toast(t('created', { sale: body.id }));
      created(body.id);
    } catch (error) {
      say(problem, error.message);
      problem.hidden = false;
    }
    go.disabled = false;
  });
  return form;
}

export function salesView() {
  const body = h('tbody', { id: 'sales' });
  const problem = h('p', { class: 'note bad', role: 'alert', hidden: true });
  const form = createForm((id) => { location.hash = `#/sale/${encodeURIComponent(id)}`; });
  form.hidden = true;
  const toggle = h('button', { type: 'button', id: 'new-sale', 'aria-expanded': 'false' }, t('new-sale'));
  toggle.addEventListener('click', () => {
    form.hidden = !form.hidden;
    toggle.setAttribute('aria-expanded', String(!form.hidden));
    if (!form.hidden) form.querySelector('input').focus();
  });
  let open = true;
  let timer = 0;
  let flows = {};
  let sales = [];
  function draw() {
    // A person in the middle of the table keeps the place.
    if (body.contains(document.activeElement)) return;
    show(body, sales.length ? sales.map((sale) => row(sale, flows[sale.sale_id])) : h('tr', {}, h('td', { colspan: 6, class: 'quiet' }, t('no-sales'))));
  }
  async function load() {
    clearTimeout(timer);
    try {
      sales = (await get('/sales')).sales;
      problem.hidden = true;
      draw();
    } catch (error) {
      say(problem, error.message);
      problem.hidden = false;
    }
    if (open) timer = setTimeout(load, EVERY_MS);
  }
  load();
  const head = ['sale', 'status', 'sold', 'limit', 'price', 'window'].map((key) => h('th', { scope: 'col' }, t(key)));
  return {
    title: t('sales'),
    element: h('div', { class: 'view' }, h('div', { class: 'spread' }, h('h1', {}, t('sales')), toggle), form, problem,
      h('div', { class: 'card' }, h('table', { class: 'stack' }, h('caption', { class: 'visually-hidden' }, t('sales')), h('thead', {}, h('tr', {}, head)), body))),
    close() {
      open = false;
      clearTimeout(timer);
    },
    update({ history }) {
      flows = history.at(-1)?.perSale ?? {};
      draw();
    },
  };
}
