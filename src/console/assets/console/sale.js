// One sale: its burn-down while it sells, its balance sheet (sheet.js), its shards, and the buttons, each with a question before it acts.

import { get, post, serverNow } from './api.js';
import { chart } from './chart.js';
import { confirm, confirmByName, toast } from './dialog.js';
import { h, say, show } from './dom.js';
import { lineCard } from './line.js';
import { needed } from './needs.js';
import { guarded } from './roles.js';
import { cloneSale, editSale, rescheduleSale } from './sale-forms.js';
import { burnDown, hiddenBadge, onTheWay, statusBadge } from './sales.js';
import { sheetCard } from './sheet.js';
import { timetable } from './timetable.js';
import { topUp, withdraw } from './units.js';
import { count, t } from './words.js';

const SPAN_MS = 120_000;
const SHEET_MS = 120_000;
/** Terms and start stay from this long before the start. */
const START_SETTLED_MS = 30_000;

const closeForGood = (id, done) => confirmByName({
  id, title: t('close-title', { sale: id }), words: t('close-words'), action: t('close'),
  work: async () => done(await post(`/sales/${encodeURIComponent(id)}/close`), t('closed')),
});

/** What can be done to the sale itself at this moment; the database judges again, by its own clock. */
function lifeOf(sale) {
  const now = serverNow();
  const open = sale.status !== 'closed';
  const sells = sale.status === 'warmed' && sale.starts_at_ms <= now + START_SETTLED_MS && now < sale.ends_at_ms;
  return [open && now + START_SETTLED_MS < sale.starts_at_ms && 'edit', open && now < sale.ends_at_ms && 'reschedule', sale.hidden ? 'publish' : !sells && 'hide', 'clone'];
}

function buttons(id, sale, done) {
  const ask = (name, said) => () => confirm({
    title: t(`${name}-title`, { sale: id }), body: t(`${name}-words`), action: t(name), danger: name === 'pause' || name === 'rebuild',
    work: async () => done(await post(`/sales/${encodeURIComponent(id)}/${name}`), t(said)),
  });
  const reclaim = () => confirm({
    title: t('reclaim-title', { sale: id }), body: t('reclaim-words'), action: t('reclaim'),
    work: async () => {
      const answer = await post(`/sales/${encodeURIComponent(id)}/reclaim`);
      done(answer, answer.reclaimed ? t('reclaimed', { n: count(answer.reclaimed.units) }) : t('nothing-to-reclaim'));
    },
  });
  const button = (name, click, kind = '') => guarded('operate', h('button', { type: 'button', id: `do-${name}`, class: kind, on: { click } }, t(name)));
  const all = {
    warm: button('warm', ask('warm', 'warmed'), 'primary'),
    pause: button('pause', ask('pause', 'paused')),
    resume: button('resume', ask('resume', 'resumed'), 'primary'),
    edit: button('edit', () => editSale(sale, done)),
    reschedule: button('reschedule', () => rescheduleSale(sale, done)),
    hide: button('hide', ask('hide', 'hidden-now')),
    publish: button('publish', ask('publish', 'published'), 'primary'),
    clone: button('clone', () => cloneSale(sale)),
    'top-up': button('top-up', () => topUp(id, done)),
    withdraw: button('withdraw', () => withdraw(id, done)),
    reclaim: button('reclaim', reclaim),
    rebuild: button('rebuild', ask('rebuild', 'rebuilding')),
    close: button('close', () => closeForGood(id, done), 'danger'),
  };
  const [next, rest] = { draft: ['warm', ['top-up', 'close']], warmed: ['pause', ['top-up', 'withdraw', 'reclaim', 'rebuild', 'close']], paused: ['resume', ['top-up', 'withdraw', 'reclaim', 'rebuild', 'close']], closed: [null, []] }[sale.status];
  return [next, ...lifeOf(sale), ...rest].filter(Boolean).map((name) => all[name]);
}

function shardTable(look) {
  const row = (shard) => h('tr', {}, h('th', { scope: 'row' }, count(shard.shard)),
    h('td', { 'data-label': t('state') }, shard.state ?? t('not-in-redis')),
    h('td', { 'data-label': t('remaining'), class: 'num' }, count(shard.remaining)),
    h('td', { 'data-label': t('requests'), class: 'num' }, count(shard.accepted_requests)));
  const head = ['shard', 'state', 'remaining', 'requests'].map((key) => h('th', { scope: 'col' }, t(key)));
  return h('table', { class: 'stack' }, h('caption', { class: 'visually-hidden' }, t('shards')), h('thead', {}, h('tr', {}, head)), h('tbody', {}, look.shards.map(row)));
}

/** The terms of payment, and what became of the orders. `take(sale)`, then `tally(counted)` with each balance sheet. */
function paymentCard(id) {
  const terms = h('p', { id: 'terms' });
  const numbers = h('dl', { class: 'figures' });
  const note = h('p', { class: 'quiet small' }, t('units-as-of'));
  const link = h('a', { href: `#/orders/${encodeURIComponent(id)}`, id: 'orders-of-sale' }, t('orders-of-sale'));
  const figure = ([state, n]) => h('div', { class: `figure figure-${state.toLowerCase()}` }, h('dt', {}, t(`units-${state}`)), h('dd', { class: 'num', id: `figure-${state.toLowerCase()}` }, count(n)));
  return {
    element: h('section', { class: 'card pad stackable' }, h('div', { class: 'spread' }, h('h2', {}, t('payment-terms')), link), terms, numbers, note),
    take({ payment }) {
      for (const part of [numbers, note]) part.hidden = payment === null;
      if (payment === null) return say(terms, t('no-payment-step'));
      const seconds = (n) => t('n-seconds', { n: count(n) });
      return say(terms, `${t('pay-within')}: ${seconds(payment.pay_within_s)} · ${t('pay-grace')}: ${seconds(payment.pay_grace_s)} · ${t(payment.limit_returns ? 'limit-returns' : 'limit-stays')}`);
    },
    tally(counted) {
      show(numbers, [['UNPAID', counted.unpaid], ['PAID', counted.paid], ['EXPIRED', counted.expired], ['CANCELLED', counted.cancelled]].map(figure));
    },
  };
}

export function saleView(id) {
  const head = h('div', { class: 'row', id: 'sale-head' });
  const actions = h('div', { class: 'row', id: 'actions' });
  const problem = h('p', { class: 'note bad', role: 'alert', hidden: true });
  const bar = h('div', { id: 'burn' });
  const numbers = h('dl', { class: 'figures' });
  const shards = h('div', {});
  const grants = h('ul', { class: 'plain-list' });
  const plan = h('div', { id: 'sale-timetable' });
  const lineAt = h('div', { class: 'stackable', hidden: true });
  let line = null;
  const curve = chart({ title: t('chart-sale'), wide: true, spanMs: SPAN_MS, lines: [{ key: 'admitted', name: t('admitted') }, { key: 'landed', name: t('landed') }, { key: 'failed', name: t('failed') }] });
  const payment = paymentCard(id);
  const badge = h('span', { id: 'sale-status' });
  const sheet = sheetCard(id, payment.tally);
  let look = null;
  let latest = null;
  function take(next, said) {
    look = next;
    const { sale, releases } = look;
    show(head, h('h1', {}, sale.title), badge, hiddenBadge(sale) ?? '', sale.limit_by === 'person' ? h('span', { class: 'badge blue' }, t('of-persons')) : '', sale.needs ? h('span', { class: 'badge blue wrap', id: 'sale-needs' }, needed(sale.needs)) : '', h('code', {}, sale.sale_id),
      sale.in_drop ? h('a', { href: `#/drop/${encodeURIComponent(sale.in_drop.drop_id)}`, id: 'drop-of-sale' }, `${t('drop')} ${sale.in_drop.drop_id}`) : '');
    payment.take(sale);
    show(actions, buttons(id, sale, take));
    show(shards, shardTable(look));
    show(grants, look.grants.map((grant) => h('li', { class: 'mono' }, grant)));
    show(plan, timetable(next, releases.map((release) => release.given)));
    if (next.line && !line) {
      line = lineCard(id, toast);
      lineAt.hidden = false;
      show(lineAt, line.element);
    }
    draw();
    if (!said) return;
    toast(said);
    if (sale.status !== 'draft') sheet.load();
  }
  function figures(flow) {
    const { sale } = look;
    const now = flow ?? { granted: sale.granted, admitted: null, landed: sale.granted - sale.stock, failed: 0, returned: null, remaining: null };
    show(bar, burnDown(now));
    const way = onTheWay(now);
    const figure = (name, n) => h('div', { class: `figure figure-${name}` }, h('dt', {}, t(name)), h('dd', { class: 'num', id: `figure-${name}` }, count(n)));
    show(numbers, figure('granted', now.granted), figure('admitted', now.admitted), figure('landed', now.landed), figure('way', way), figure('failed', now.failed), sale.payment || now.returned ? figure('returned', now.returned) : '', figure('remaining', now.remaining));
  }
  function draw() {
    const flow = latest?.snapshot?.sales.find((sale) => sale.sale_id === id);
    figures(flow ?? null);
    const known = look.shards.every((shard) => shard.remaining !== null);
    const left = flow ? flow.remaining : known ? look.shards.reduce((sum, shard) => sum + shard.remaining, look.in_transit ?? 0) : null;
    const state = flow ? flow.state : look.shards[0]?.state ?? null;
    show(badge, statusBadge(look.sale, look.sale.status === 'draft' ? undefined : state, left));
    if (!latest?.snapshot) return;
    curve.draw(latest.history.map((point) => ({ at: point.at, ...(point.perSale[id] ?? {}) })), latest.snapshot.at_ms);
  }
  async function load() {
    try {
      take(await get(`/sales/${encodeURIComponent(id)}`));
      if (look.sale.status !== 'draft') sheet.load();
    } catch (error) {
      say(problem, error.message);
      problem.hidden = false;
    }
  }
  load();
  const timer = setInterval(() => { if (!document.hidden && look && look.sale.status !== 'draft') sheet.load(); }, SHEET_MS);
  return {
    title: id,
    element: h('div', { class: 'view' }, h('p', {}, h('a', { href: '#/sales' }, `← ${t('sales')}`)), head, problem, actions,
      h('section', { class: 'card pad stackable' }, h('h2', {}, t('burn-down')), bar, numbers), curve.element, lineAt, payment.element, sheet.element,
      h('div', { class: 'halves' }, h('section', { class: 'card pad' }, h('h2', {}, t('shards')), shards), h('section', { class: 'card pad stackable' }, h('h2', {}, t('grants')), grants, h('h2', {}, t('timetable')), plan))),
    close() {
      clearInterval(timer);
      line?.close();
    },
    update(state) {
      latest = state;
      if (look) draw();
    },
  };
}
