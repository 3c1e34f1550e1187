// The demo shop: a product page with a countdown by the server's clock, the button, and the honest result.

import { buy, call, follow } from './buy.js';
import { crowdPanel } from './crowd.js';
import { dictionary } from './dictionary.js';
import { h, say, show } from './dom.js';
import { countdown, orderList, paymentBox, paymentStep } from './orders.js';
import { count, learn, price, switchLanguage, t } from './words.js';

const EVERY_MS = 1000;
const VISITOR = 'seckill.visitor';
const app = document.getElementById('app');
const wanted = new URLSearchParams(location.search).get('sale');
/** What this page knows; `purchase` is {sale, pays, requestId, step, detail, reason, began, tookMs}, `order` what became of it. */
const state = { sales: [], sale: null, drop: null, orders: [], order: null, ahead: 0, crowd: { running: false, number: 0, progress: {} }, visitor: null, purchase: null, problem: null };
let parts = null;
let timer = 0;
let solving = new AbortController();
let askedOrders = 0;

function kept() {
  try {
    return JSON.parse(sessionStorage.getItem(VISITOR)) ?? {};
  } catch {
    return {};
  }
}
const keep = () => sessionStorage.setItem(VISITOR, JSON.stringify({ visitor: state.visitor, purchase: state.purchase }));

async function visit() {
  solving.abort();
  const answer = await call('POST', '/shop/v1/visitors', { body: {} });
  if (answer.status !== 200) throw new Error(answer.body.title ?? String(answer.status));
  Object.assign(state, { visitor: answer.body, purchase: null, orders: [], order: null });
  keep();
}

const BUTTONS = { READY: 'buy', SOLD_OUT: 'buy-sold-out', NOT_STARTED: 'buy-soon', PAUSED: 'buy-paused', ENDED: 'buy-over', LOADING: 'buy-loading' };

/** The list of what happened to the purchase, and to its order. */
function steps(purchase, bought) {
  if (!purchase) return [h('li', {}, t('nothing-yet'))];
  const { step, requestId, detail, why, reason, tookMs } = purchase;
  const order = ['token', 'queued', 'final'];
  const reached = { place: -1, token: 0, asking: 1, unknown: 1, queued: 2, confirmed: 3, failed: 3, refused: -2 }[step];
  const small = (text) => (text ? h('small', {}, text) : null);
  const items = [];
  if (step === 'place') items.push(h('li', { class: 'now' }, t('step-place'), small(detail)));
  if (step === 'refused') return [...items, h('li', { class: 'failed', id: 'refused' }, t('step-refused', { why }))];
  for (const [at, name] of order.entries()) {
    const kind = reached > at ? 'done' : reached === at ? 'now' : '';
    if (name === 'final' && step === 'confirmed') items.push(h('li', { class: 'done', id: 'confirmed' }, t('step-confirmed'), small(tookMs ? t('ms-later', { ms: count(tookMs) }) : '')));
    else if (name === 'final' && step === 'failed') items.push(h('li', { class: 'failed', id: 'failed' }, t('step-failed', { reason: t(`reason-${reason}`) })));
    else items.push(h('li', { class: kind }, t(`step-${name}`), small(kind === 'now' ? detail : name === 'queued' && requestId && reached > 1 ? t('request-id', { id: requestId }) : '')));
  }
  if (purchase.pays && step !== 'failed') items.push(paymentStep(bought));
  return items;
}

function page() {
  const button = h('button', { type: 'button', class: 'primary buy', id: 'buy', on: { click: press } }, t('buy'));
  const other = h('button', { type: 'button', id: 'someone-else', on: { click: () => { visit().then(draw, trouble); } } }, t('someone-else'));
  const language = h('button', { type: 'button', class: 'plain', id: 'language', lang: t('other-lang-code'), 'aria-label': t('other-lang-label') }, t('other-lang'));
  language.addEventListener('click', () => { switchLanguage(); parts = null; draw(); document.getElementById('language').focus(); });
  const choose = h('select', { id: 'sale', 'aria-label': t('sale') });
  choose.addEventListener('change', () => { location.search = `?sale=${encodeURIComponent(choose.value)}`; });
  parts = {
    button, other, choose,
    title: h('h1', {}), price: h('p', { class: 'price num' }), limit: h('span', { class: 'badge' }), dropLimit: h('span', { class: 'badge', id: 'drop-limit' }), needs: h('span', { class: 'badge', id: 'needs' }), lots: h('nav', { class: 'lots', id: 'lots', 'aria-label': t('lots') }), left: h('p', { id: 'left', class: 'small' }), terms: h('p', { id: 'terms', class: 'small quiet' }),
    meter: h('span', {}), clockWords: h('span', { class: 'quiet' }), clock: h('strong', { id: 'clock' }), steps: h('ol', { class: 'steps', id: 'steps', 'aria-live': 'polite' }),
    bar: h('progress', { id: 'solving', max: 1, 'aria-label': t('solving-bar') }), stop: h('button', { type: 'button', id: 'stop-solving', on: { click: () => solving.abort() } }, t('stop-solving')),
    who: h('p', { class: 'small quiet', id: 'visitor' }), problem: h('p', { class: 'note bad', role: 'alert', id: 'problem', hidden: true }),
    crowd: crowdPanel(() => state.sale, read), payment: paymentBox(readAgain),
  };
  parts.solving = h('div', { class: 'solving', hidden: true }, parts.bar, parts.stop);
  parts.orders = orderList(parts.payment.told);
  document.title = t('shop');
  show(app,
    h('header', { class: 'top' }, h('div', { class: 'brand' }, h('img', { src: 'icon.svg', alt: '', width: 28, height: 28 }), t('shop')),
      h('div', { class: 'end' }, choose, language)),
    h('main', {}, parts.problem,
      h('section', { class: 'card product' }, h('div', { class: 'art' }, h('img', { src: 'phone.svg', alt: '', width: 360, height: 360 })),
        h('div', { class: 'offer' }, h('div', { class: 'row' }, h('span', { class: 'badge bad' }, t('demo-only')), parts.limit, parts.dropLimit, parts.needs), parts.title, parts.price, parts.lots,
          h('div', { class: 'stock' }, h('div', { class: 'meter', 'aria-hidden': 'true' }, parts.meter), parts.left),
          h('p', { class: 'clock' }, parts.clockWords, parts.clock), button, parts.terms)),
      h('div', { class: 'panels' },
        h('section', { class: 'card panel' }, h('h2', {}, t('your-order')), h('p', { class: 'quiet' }, t('order-words')), parts.steps, parts.solving, parts.payment.element, h('div', { class: 'spread' }, parts.who, other)),
        parts.orders.element, parts.crowd.element)));
}

/** The sales of the drop, to choose among: sizes, colours, rounds. */
function lots({ drop, sale }) {
  const lot = (one) => {
    const word = one.state === 'READY' ? t('left', { n: count(one.remaining) }) : t(BUTTONS[one.state] ?? 'buy-loading');
    const here = one.sale_id === sale?.sale_id;
    return h('a', { href: `?sale=${encodeURIComponent(one.sale_id)}`, class: one.state === 'READY' ? 'lot' : 'lot away', 'aria-current': here ? 'page' : null }, one.title, h('small', {}, word));
  };
  return drop ? drop.sales.map(lot) : [];
}

let mostLeft = 1;
function draw() {
  if (!parts) page();
  const { sale, purchase, visitor, problem } = state;
  parts.problem.hidden = !problem && (sale !== null || state.sales === null);
  say(parts.problem, problem ? t('cannot-load', { why: problem }) : sale ? '' : t('no-sale'));
  const options = state.sales.map((one) => one.sale_id).join(' ');
  if (parts.options !== options) {
    parts.options = options;
    show(parts.choose, state.sales.map((one) => h('option', { value: one.sale_id, selected: one.sale_id === sale?.sale_id }, one.sale_id)));
    parts.choose.hidden = state.sales.length < 2;
  }
  const busy = purchase && ['place', 'token', 'asking'].includes(purchase.step);
  parts.button.disabled = !sale || sale.state !== 'READY' || Boolean(busy) || !visitor;
  say(parts.button, busy ? t('buying') : t(BUTTONS[sale?.state] ?? 'buy-loading'));
  say(parts.who, visitor ? t('you-are', { visitor: visitor.visitor }) : '');
  state.order = state.orders.find((order) => order.request_id === purchase?.requestId) ?? null;
  show(parts.steps, steps(purchase, state.order));
  const isSolving = purchase?.step === 'token' && typeof purchase.solving === 'number';
  // A button that vanishes under the keyboard hands on to the one that comes next, as soon as that can be pressed.
  if (!isSolving && document.activeElement === parts.stop) parts.next = parts.button;
  parts.solving.hidden = !isSolving;
  parts.bar.value = isSolving ? purchase.solving : 0;
  if (parts.next && !parts.next.disabled) {
    parts.next.focus();
    parts.next = null;
  }
  parts.payment.update(state);
  parts.orders.update(state);
  parts.crowd.update(state);
  const chosen = JSON.stringify([state.drop, sale?.sale_id]);
  if (parts.chosen !== chosen && !parts.lots.contains(document.activeElement)) {
    parts.chosen = chosen;
    show(parts.lots, lots(state));
    parts.lots.hidden = !state.drop;
    parts.dropLimit.hidden = !state.drop || state.drop.limit === null;
    say(parts.dropLimit, state.drop?.limit ? t('drop-limit', { n: count(state.drop.limit) }) : '');
  }
  if (!sale) return;
  say(parts.title, sale.title);
  say(parts.price, price(sale.price_cents, sale.currency));
  say(parts.terms, sale.pay_within_s === null ? '' : t('pay-terms', { n: count(sale.pay_within_s) }));
  // The limit of the drop says enough where the sale has none.
  parts.limit.hidden = sale.per_user_limit === null && Boolean(state.drop?.limit);
  say(parts.limit, sale.per_user_limit === null ? t('no-limit') : sale.per_user_limit === 1 ? t('one-each') : t('limit-each', { n: sale.per_user_limit }));
  parts.needs.hidden = sale.needs === null;
  say(parts.needs, sale.needs === null ? '' : t('for-buyers', { what: needed(sale.needs) }));
  mostLeft = Math.max(mostLeft, sale.remaining ?? 0);
  parts.meter.style.width = `${sale.remaining === null ? 0 : (100 * sale.remaining) / mostLeft}%`;
  say(parts.left, sale.remaining === null ? t('left-unknown') : t('left', { n: count(sale.remaining) }));
  tick();
}

/** What a sale needs of its buyers, in a few words. */
function needed({ pass, ...facts }) {
  const words = Object.entries(facts).map(([fact, values]) => `${fact} ${values.join(' / ')}`);
  return (pass ? [...words, t('a-pass')] : words).join(', ');
}

function tick() {
  const { sale } = state;
  if (!parts) return;
  const now = Date.now() + state.ahead;
  parts.payment.tick(now);
  if (!sale) return;
  const [starts, ends] = [Date.parse(sale.starts_at), Date.parse(sale.ends_at)];
  say(parts.clockWords, now < starts ? t('starts-in') : now < ends ? t('ends-in') : t('is-over'));
  say(parts.clock, now < ends ? countdown((now < starts ? starts : ends) - now) : '');
}

function trouble(error) {
  state.problem = error.message;
  draw();
}

async function listenFor(requestId) {
  const mine = state.purchase;
  const current = () => state.purchase === mine;
  const last = await follow(mine.sale, requestId, state.visitor.token, () => {}, current);
  if (!current() || !last) return;
  const tookMs = mine.began ? Date.now() - mine.began : 0;
  if (last.status === 'CONFIRMED') Object.assign(mine, { step: 'confirmed', tookMs });
  else if (last.status === 'FAILED') Object.assign(mine, { step: 'failed', reason: last.reason });
  else Object.assign(mine, { step: 'refused', why: t('nothing-yet') });
  keep();
  draw();
  readAgain();
}

async function press() {
  const mine = { sale: state.sale.sale_id, pays: state.sale.pay_within_s !== null, step: 'token', began: Date.now() };
  state.purchase = mine;
  solving = new AbortController();
  draw();
  const requestId = await buy(state.sale, state.visitor.token, (news) => {
    if (news.step) mine.detail = '';
    Object.assign(mine, news);
    if (state.purchase !== mine) return;
    // How far a proof of work is changes often, and nothing else with it.
    if (!news.step && news.solving !== undefined) {
      parts.bar.value = news.solving;
      return;
    }
    keep();
    draw();
  }, solving.signal);
  read();
  if (requestId && state.purchase === mine) listenFor(requestId);
}

/** The visitor's orders, at most once a second: the page reads more often while a crowd buys. */
async function readOrders() {
  const { visitor } = state;
  if (!visitor || Date.now() - askedOrders < EVERY_MS * 0.9) return;
  askedOrders = Date.now();
  const answer = await call('GET', '/v1/orders', { token: visitor.token });
  if (answer.status === 200 && state.visitor === visitor) state.orders = answer.body.orders;
}

/** How far the server's clock is ahead of this one, at the middle of the call. */
async function readClock(saleId) {
  const began = Date.now();
  const answer = await call('GET', `/v1/sales/${encodeURIComponent(saleId)}`);
  if (answer.status === 200) state.ahead = answer.body.server_time_ms - (began + Date.now()) / 2;
}

/** The drop of the sale that is shown. */
async function readDrop() {
  const id = state.sale?.drop_id ?? null;
  if (id === null) {
    state.drop = null;
    return;
  }
  const answer = await call('GET', `/v1/drops/${encodeURIComponent(id)}`);
  if (answer.status === 200) state.drop = answer.body;
}

function readAgain() {
  askedOrders = 0;
  read();
}

async function read() {
  clearTimeout(timer);
  if (!document.hidden) {
    const [sales, crowd] = await Promise.all([call('GET', '/v1/sales'), call('GET', '/shop/v1/crowds'), readOrders()]);
    state.problem = sales.status === 200 ? null : (sales.body.title ?? String(sales.status));
    if (sales.status === 200) {
      state.sales = sales.body.sales;
      state.sale = state.sales.find((sale) => sale.sale_id === wanted) ?? state.sales.find((sale) => sale.sale_id === 'demo') ?? state.sales[0] ?? null;
    }
    if (crowd.status === 200) state.crowd = crowd.body.crowd;
    if (state.sale) await Promise.all([readClock(state.sale.sale_id), readDrop()]);
    draw();
  }
  clearTimeout(timer);
  timer = setTimeout(read, state.crowd.running ? EVERY_MS / 3 : EVERY_MS);
}

learn(dictionary);
const before = kept();
if (before.visitor) {
  Object.assign(state, before);
  if (state.purchase?.requestId && ['asking', 'queued', 'unknown'].includes(state.purchase.step)) listenFor(state.purchase.requestId);
  else if (state.purchase && ['place', 'token'].includes(state.purchase.step)) state.purchase = null;
} else {
  visit().then(draw, trouble);
}
document.addEventListener('visibilitychange', () => { if (!document.hidden) read(); });
setInterval(tick, 250);
read();
