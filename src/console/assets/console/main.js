// The frame: signing in, the bar on top, which view is shown, and the one reading of the pipeline a second that all views share.

import { get, isSignedIn, onSignedOut, operator, signIn, signOut } from './api.js';
import { actsView } from './acts.js';
import { auditsView } from './audits.js';
import { buyersView } from './buyers.js';
import { dictionary } from './dictionary.js';
import { dlqView } from './dlq.js';
import { dropView } from './drop.js';
import { dropsView } from './drops.js';
import { field, h, say, show } from './dom.js';
import { orderView } from './order.js';
import { ordersView } from './orders.js';
import { pipelineView } from './pipeline.js';
import { registerView } from './register.js';
import { salesView } from './sales.js';
import { saleView } from './sale.js';
import { count, learn, switchLanguage, t } from './words.js';

const EVERY_MS = 1000;
const HISTORY_MAX = 240;
/** Refunds are searched this often: a person has to act, not within a second. */
const REFUNDS_MS = 10_000;
const app = document.getElementById('app');
const views = {
  pipeline: pipelineView, sales: salesView, sale: saleView, drops: dropsView, drop: dropView, orders: ordersView, order: orderView, buyers: buyersView, dlq: dlqView, register: registerView, audits: auditsView, acts: actsView,
};
/** The tab of a view that has none of its own. */
const TABS = { sale: 'sales', drop: 'drops', order: 'orders' };

/** What every view gets: the last reading of the pipeline, those before it, and what happened to the connection. */
const state = { snapshot: null, history: [], lost: null };
let refunds = { count: 0, askedAt: 0 };
let view = null;
let timer = 0;
let asking = false;

/** Rates between two readings, and what lies where: one point of the charts. */
function point(now, before) {
  const sum = (list, of) => list.reduce((total, one) => total + (of(one) ?? 0), 0);
  const queues = (kind) => (now.queues ? sum(now.queues.filter((queue) => queue.kind === kind), (queue) => queue.ready) : null);
  const known = now.shards.length > 0 && now.shards.every((shard) => shard.outbox !== null);
  const flow = (key) => (now.sales.every((sale) => sale[key] !== null) ? sum(now.sales, (sale) => sale[key]) : null);
  const accepted = now.servers[0].ok ? flow('accepted_requests') : null;
  const outbox = known ? sum(now.shards, (shard) => shard.outbox) : null;
  const parked = known ? sum(now.shards, (shard) => shard.relay_dlq) : null;
  // What landed, also of orders that ended since: it only grows.
  const sales = now.sales.map((sale) => ({ ...sale, landed_ever: sale.returned === null ? null : sale.landed + sale.returned }));
  const totals = {
    at: now.at_ms,
    accepted,
    outbox,
    pending: known ? sum(now.shards, (shard) => shard.pending) : null,
    parked,
    sent: accepted === null || outbox === null ? null : accepted - outbox - parked,
    ready: queues('orders'),
    retry: queues('retry'),
    dlq: queues('dlq'),
    landed: now.servers[2].ok ? flow('landed') : null,
    failed: now.servers[2].ok ? flow('failed') : null,
    perSale: Object.fromEntries(sales.map((sale) => [sale.sale_id, sale])),
  };
  if (!before || totals.at <= before.at) return { ...totals, acceptedRate: null, sentRate: null, landedRate: null };
  // Only sales that both readings show: one that appears or goes is no flow.
  const grown = (key, flow) => (totals[key] === null || before[key] === null ? null : sum(sales, (sale) => {
    const then = before.perSale[sale.sale_id];
    return then && then[flow] !== null && sale[flow] !== null ? sale[flow] - then[flow] : 0;
  }));
  const perSecond = (n) => (n === null ? null : Math.max(0, (n * 1000) / (totals.at - before.at)));
  const more = grown('accepted', 'accepted_requests');
  const left = outbox === null || before.outbox === null ? null : outbox + parked - before.outbox - before.parked;
  return {
    ...totals,
    acceptedRate: perSecond(more),
    sentRate: more === null || left === null ? null : perSecond(more - left),
    landedRate: perSecond(grown('landed', 'landed_ever')),
  };
}

/** The number beside "Orders": payments whose money has to go back. */
async function lookForRefunds() {
  if (Date.now() - refunds.askedAt < REFUNDS_MS) return;
  refunds.askedAt = Date.now();
  // Without an answer the last number stays; the pipeline's answer says that the process is away.
  refunds.count = await get('/refunds?limit=0').then((found) => found.count, () => refunds.count);
}

async function look() {
  clearTimeout(timer);
  if (!isSignedIn()) return;
  if (!asking && !document.hidden) {
    asking = true;
    lookForRefunds().then(tell);
    try {
      const snapshot = await get('/pipeline');
      state.lost = null;
      if (state.snapshot?.at_ms !== snapshot.at_ms) {
        state.snapshot = snapshot;
        state.history.push(point(snapshot, state.history.at(-1)));
        if (state.history.length > HISTORY_MAX) state.history.shift();
      }
    } catch (problem) {
      state.lost = problem.message;
    }
    asking = false;
    if (isSignedIn()) {
      tell();
      view?.update?.(state);
    }
  }
  timer = setTimeout(look, EVERY_MS);
}

/** The lights of the servers, and the word when this page gets nothing. */
function tell() {
  const lost = document.getElementById('lost');
  if (!lost) return;
  lost.hidden = state.lost === null;
  if (state.lost !== null) say(lost, t('lost', { why: state.lost }));
  const badge = document.getElementById('refunds-badge');
  badge.hidden = refunds.count === 0;
  say(badge.firstChild, count(refunds.count));
  say(badge.lastChild, t('refunds-label', { n: count(refunds.count) }));
  for (const server of state.snapshot?.servers ?? []) {
    const light = document.getElementById(`light-${server.name}`);
    light.className = `badge ${server.ok ? 'good' : 'bad'}`;
    light.title = server.problem ?? '';
    say(light.lastChild, server.ok ? t('up') : t('away'));
  }
}

function route() {
  const [name, ...rest] = location.hash.replace(/^#\/?/, '').split('/');
  const known = Object.hasOwn(views, name) ? name : 'pipeline';
  return { name: known, argument: decodeURIComponent(rest.join('/')) };
}

function open() {
  if (!isSignedIn()) return signInPage();
  const { name, argument } = route();
  view?.close?.();
  const main = document.getElementById('main') ?? frame();
  for (const link of document.querySelectorAll('nav a')) {
    const here = link.getAttribute('href') === `#/${TABS[name] ?? name}`;
    if (here) link.setAttribute('aria-current', 'page');
    else link.removeAttribute('aria-current');
  }
  view = views[name](argument, state);
  document.title = `${view.title} · seckill`;
  show(main, view.element);
  tell();
  view.update?.(state);
  return undefined;
}

function language(redraw) {
  const button = h('button', { type: 'button', class: 'plain', id: 'language', lang: t('other-lang-code'), 'aria-label': t('other-lang-label') }, t('other-lang'));
  button.addEventListener('click', () => {
    switchLanguage();
    redraw();
    document.getElementById('language').focus();
  });
  return button;
}

function frame() {
  const light = (name, label) => h('span', { class: 'badge', id: `light-${name}` },
    h('span', { class: 'dot', 'aria-hidden': 'true' }), h('span', {}, label), h('span', { class: 'visually-hidden' }, '…'));
  const badge = h('span', { class: 'badge bad', id: 'refunds-badge', hidden: true }, h('span', { 'aria-hidden': 'true' }), h('span', { class: 'visually-hidden' }));
  const tab = (name) => h('a', { href: `#/${name}` }, t(name), name === 'orders' ? [' ', badge] : null);
  const main = h('main', { id: 'main', tabindex: '-1' });
  const leave = h('button', { type: 'button', class: 'plain', id: 'sign-out', on: { click: leaveNow } }, t('sign-out'));
  show(app,
    h('a', { class: 'skip', href: '#main', on: { click: (event) => { event.preventDefault(); main.focus(); } } }, t('skip')),
    h('header', { class: 'bar' },
      h('div', { class: 'bar-top' },
        h('a', { class: 'brand', href: '#/pipeline' }, h('img', { src: 'icon.svg', alt: '', width: 28, height: 28 }), h('span', {}, 'seckill'), h('span', { class: 'quiet brand-more' }, t('console'))),
        h('div', { class: 'lights', role: 'status', 'aria-label': t('servers') }, light('redis', 'Redis'), light('rabbitmq', 'RabbitMQ'), light('mysql', 'MySQL')),
        h('div', { class: 'row bar-end' }, language(redraw), leave)),
      h('nav', { 'aria-label': t('views') }, ['pipeline', 'sales', 'drops', 'orders', 'buyers', 'dlq', 'register', 'audits', 'acts'].map(tab))),
    h('p', { id: 'lost', class: 'note bad lost', role: 'alert', hidden: true }),
    main);
  return main;
}

function redraw() {
  show(app);
  open();
}

function leaveNow() {
  signOut();
  state.snapshot = null;
  state.history = [];
  refunds = { count: 0, askedAt: 0 };
  view?.close?.();
  view = null;
  redraw();
}

function signInPage(message) {
  document.title = `${t('sign-in')} · seckill`;
  const token = h('input', { type: 'password', autocomplete: 'off', required: true, spellcheck: 'false' });
  const name = h('input', { type: 'text', autocomplete: 'name', maxlength: 40, value: operator() });
  const problem = h('p', { class: 'note bad', role: 'alert', id: 'sign-in-problem', hidden: !message }, message ?? '');
  const go = h('button', { type: 'submit', class: 'primary', id: 'sign-in' }, t('sign-in'));
  const form = h('form', { class: 'card sign-in' },
    h('div', { class: 'spread' }, h('div', { class: 'brand' }, h('img', { src: 'icon.svg', alt: '', width: 34, height: 34 }), h('h1', {}, t('title'))), language(() => signInPage())),
    h('p', { class: 'quiet' }, t('sign-in-words')),
    field('token', t('token'), token, t('token-hint')),
    field('operator', t('operator'), name, t('operator-hint')),
    problem, go);
  form.addEventListener('submit', async (event) => {
    event.preventDefault();
    go.disabled = true;
    try {
      await signIn(token.value.trim(), name.value.trim());
      show(app);
      open();
      look();
    } catch (error) {
      say(problem, error.status === 401 ? t('token-wrong') : t('lost', { why: error.message }));
      problem.hidden = false;
      go.disabled = false;
      token.select();
    }
  });
  show(app, h('main', { class: 'sign-in-page' }, form));
  token.focus();
}

onSignedOut(() => {
  if (!isSignedIn()) return;
  leaveNow();
  signInPage(t('token-wrong'));
});
learn(dictionary);
window.addEventListener('hashchange', () => { open(); document.getElementById('main')?.focus({ preventScroll: true }); window.scrollTo(0, 0); });
document.addEventListener('visibilitychange', () => { if (!document.hidden) look(); });
document.body.append(h('div', { id: 'toasts', role: 'status', 'aria-live': 'polite' }));
open();
look();
