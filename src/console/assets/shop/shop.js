// The demo shop: a product page, of one sale or of the sizes of a drop, with a countdown by the server's clock, the button, and the
// honest result.

import { buy, call, follow } from './buy.js';
import { crowdPanel } from './crowd.js';
import { dictionary } from './dictionary.js';
import { h, say, show } from './dom.js';
import { goesByLine, lineBox } from './line.js';
import { lineWords } from './line-dictionary.js';
import { lineReader } from './line-reader.js';
import { dropLimits, firstLot, lotChooser, nextRelease } from './lots.js';
import { lacking, needed } from './needs.js';
import { countdown, orderList, paymentBox } from './orders.js';
import { steps } from './steps.js';
import { count, learn, price, shortTime, switchLanguage, t, timeZone } from './words.js';

const EVERY_MS = 1000;
const VISITOR = 'seckill.visitor';
const app = document.getElementById('app');
const asked = new URLSearchParams(location.search);
/** The sale or the drop that the address names; a person may choose another size. */
const wanted = { sale: asked.get('sale'), drop: asked.get('drop') };
/** What this page knows; `line` and `entry` are the sale's line and the visitor's entry in it, `purchase` is {sale, pays, requestId, step, detail, reason, began, tookMs}, `order` what became of it. */
const state = { sales: [], sale: null, drop: null, line: null, entry: null, orders: [], order: null, ahead: 0, crowd: { running: false, number: 0, progress: {} }, visitor: null, purchase: null, problem: null };
let parts = null;
let timer = 0;
let solving = new AbortController();
const lines = lineReader();
let askedOrders = 0;

function kept() {
  try {
    return JSON.parse(sessionStorage.getItem(VISITOR)) ?? {};
  } catch {
    return {};
  }
}
const keep = () => sessionStorage.setItem(VISITOR, JSON.stringify({ visitor: state.visitor, purchase: state.purchase }));

async function visit(member = false) {
  solving.abort();
  const answer = await call('POST', '/shop/v1/visitors', { body: { member } });
  if (answer.status !== 200) throw new Error(answer.body.title ?? String(answer.status));
  Object.assign(state, { visitor: answer.body, purchase: null, orders: [], order: null, entry: null });
  keep();
}

const BUTTONS = { READY: 'buy', SOLD_OUT: 'buy-sold-out', NOT_STARTED: 'buy-soon', PAUSED: 'buy-paused', ENDED: 'buy-over', LOADING: 'buy-loading' };

function page() {
  const button = h('button', { type: 'button', class: 'primary buy', id: 'buy', on: { click: press } }, t('buy'));
  const become = (id, member) => h('button', { type: 'button', id, on: { click: () => { visit(member).then(draw, trouble); } } }, t(id));
  const [other, member] = [become('someone-else', false), become('be-member', true)];
  const language = h('button', { type: 'button', class: 'plain', id: 'language', lang: t('other-lang-code'), 'aria-label': t('other-lang-label') }, t('other-lang'));
  language.addEventListener('click', () => { switchLanguage(); parts = null; draw(); document.getElementById('language').focus(); });
  const choose = h('select', { id: 'sale', 'aria-label': t('sale') });
  choose.addEventListener('change', () => { location.search = choose.value; });
  parts = {
    button, member, choose, art: h('img', { alt: '', width: 360, height: 360 }),
    title: h('h1', {}), price: h('p', { class: 'price num' }), limit: h('span', { class: 'badge' }), limits: dropLimits(), needs: h('span', { class: 'badge blue wrap', id: 'needs' }), lots: lotChooser(chooseLot), left: h('p', { id: 'left', class: 'small' }), terms: h('p', { id: 'terms', class: 'small quiet' }),
    lack: h('p', { class: 'note warn', id: 'lack' }), window: h('p', { id: 'window', class: 'small quiet' }),
    meter: h('span', {}), clockWords: h('span', { class: 'quiet' }), clock: h('strong', { id: 'clock' }), steps: h('ol', { class: 'steps', id: 'steps', 'aria-live': 'polite' }),
    bar: h('progress', { id: 'solving', max: 1, 'aria-label': t('solving-bar') }), stop: h('button', { type: 'button', id: 'stop-solving', on: { click: () => solving.abort() } }, t('stop-solving')),
    who: h('p', { class: 'small quiet', id: 'visitor' }), problem: h('p', { class: 'note bad', role: 'alert', id: 'problem', hidden: true }),
    crowd: crowdPanel(() => state.sale, read), payment: paymentBox(readAgain), line: lineBox(acted),
  };
  parts.solving = h('div', { class: 'solving', hidden: true }, parts.bar, parts.stop);
  parts.orders = orderList(parts.payment.told);
  document.title = t('shop');
  show(app,
    h('header', { class: 'top' }, h('div', { class: 'brand' }, h('img', { src: 'icon.svg', alt: '', width: 28, height: 28 }), t('shop')),
      h('div', { class: 'end' }, choose, language)),
    h('main', {}, parts.problem,
      h('section', { class: 'card product' }, h('div', { class: 'art' }, parts.art),
        h('div', { class: 'offer' }, h('div', { class: 'row' }, h('span', { class: 'badge bad' }, t('demo-only')), parts.limit, parts.limits.badge, parts.needs), parts.title, parts.price, parts.lots.element,
          h('div', { class: 'stock' }, h('div', { class: 'meter', 'aria-hidden': 'true' }, parts.meter), parts.left),
          h('div', {}, h('p', { class: 'clock' }, parts.clockWords, parts.clock), parts.window), h('div', { class: 'notes', 'aria-live': 'polite' }, parts.lack, parts.limits.have), parts.line.element, button, parts.terms)),
      h('div', { class: 'panels' },
        h('section', { class: 'card panel' }, h('h2', {}, t('your-order')), h('p', { class: 'quiet' }, t('order-words')), parts.steps, parts.solving, parts.payment.element, h('div', { class: 'spread' }, parts.who, h('div', { class: 'row' }, other, member))),
        parts.orders.element, parts.crowd.element)));
}

let mostLeft = 1;
function draw() {
  if (!parts) page();
  const { sale, purchase, visitor, problem } = state;
  parts.problem.hidden = !problem && (sale !== null || state.sales === null);
  say(parts.problem, problem ? t('cannot-load', { why: problem }) : sale ? '' : t('no-sale'));
  drawChoice(sale);
  const busy = purchase && ['place', 'token', 'asking'].includes(purchase.step);
  parts.button.hidden = Boolean(sale) && goesByLine(sale, state.line);
  parts.button.disabled = !sale || sale.state !== 'READY' || Boolean(busy) || !visitor;
  say(parts.button, busy ? t('buying') : nextRelease(sale) ? t('buy-more-soon') : t(BUTTONS[sale?.state] ?? 'buy-loading'));
  say(parts.who, !visitor ? '' : t(visitor.tier ? 'you-are-member' : 'you-are', { visitor: visitor.visitor, tier: visitor.tier }));
  parts.member.hidden = !visitor?.has_members;
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
  parts.line.update(state, Date.now() + state.ahead);
  parts.payment.update(state);
  parts.orders.update(state);
  parts.crowd.update(state);
  parts.lots.update(state, Date.now() + state.ahead);
  parts.limits.update(state);
  const art = sale?.drop_id ? 'shoe.svg' : 'phone.svg';
  if (parts.art.getAttribute('src') !== art) parts.art.setAttribute('src', art);
  if (!sale) return;
  say(parts.title, sale.title);
  say(parts.price, price(sale.price_cents, sale.currency));
  say(parts.terms, sale.pay_within_s === null ? '' : t(goesByLine(sale, state.line) ? 'pay-terms-line' : 'pay-terms', { n: count(sale.pay_within_s) }));
  // The limit of the drop says enough where the sale has none.
  parts.limit.hidden = sale.per_user_limit === null && Boolean(state.drop?.limit);
  say(parts.limit, sale.per_user_limit === null ? t('no-limit') : sale.per_user_limit === 1 ? t(sale.limit_by === 'person' ? 'one-a-person' : 'one-each') : t('limit-each', { n: sale.per_user_limit }));
  parts.needs.hidden = sale.needs === null;
  say(parts.needs, sale.needs === null ? '' : t('for-buyers', { what: needed(sale.needs) }));
  const lacks = visitor ? lacking(sale.needs, { tier: visitor.tier }) : null;
  parts.lack.hidden = lacks === null;
  say(parts.lack, lacks === null ? '' : t('you-lack', { what: needed(lacks) }));
  mostLeft = Math.max(mostLeft, sale.remaining ?? 0);
  parts.meter.style.width = `${sale.remaining === null ? 0 : (100 * sale.remaining) / mostLeft}%`;
  say(parts.left, sale.remaining === null ? t('left-unknown') : t('left', { n: count(sale.remaining) }));
  tick();
}

/** The sales and drops that can be shown. */
function drawChoice(sale) {
  const drops = [...new Set(state.sales.map((one) => one.drop_id).filter(Boolean))];
  const choices = [...state.sales.filter((one) => !one.drop_id).map((one) => ['sale', one.sale_id]), ...drops.map((id) => ['drop', id])];
  const options = JSON.stringify([choices, sale?.sale_id]);
  if (parts.options === options) return;
  parts.options = options;
  const isShown = (kind, id) => id === (kind === 'sale' ? sale?.sale_id : sale?.drop_id);
  show(parts.choose, choices.map(([kind, id]) => h('option', { value: `?${kind}=${encodeURIComponent(id)}`, selected: isShown(kind, id) }, id)));
  parts.choose.hidden = choices.length < 2;
}

/** Another size, without loading the page again. */
function chooseLot(id) {
  Object.assign(wanted, { sale: id, drop: null });
  history.replaceState(null, '', `?sale=${encodeURIComponent(id)}`);
  Object.assign(state, { sale: state.drop.sales.find((sale) => sale.sale_id === id), line: null, entry: null });
  mostLeft = 1;
  draw();
  read();
}

function tick() {
  const { sale } = state;
  if (!parts) return;
  const now = Date.now() + state.ahead;
  parts.payment.tick(now);
  parts.lots.tick(now, state.drop);
  parts.line.tick(now);
  if (!sale) return;
  const [starts, ends, release] = [Date.parse(sale.starts_at), Date.parse(sale.ends_at), nextRelease(sale)];
  const [words, until] = now < starts ? ['starts-in', starts] : now < release ? ['more-in', release] : now < ends ? ['ends-in', ends] : ['is-over', now];
  say(parts.clockWords, t(words));
  say(parts.clock, now < ends ? countdown(until - now) : '');
  say(parts.window, t('window', { starts: shortTime(starts, now), ends: shortTime(ends, now), zone: timeZone() }));
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
  const requestId = await buy({ ...state.sale, drop_limit: state.drop?.limit ?? null }, state.visitor.token, (news) => {
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

/** The line of the sale that is shown, and the visitor's entry. An offer is a purchase: it is followed and paid as one. */
async function readLine() {
  const { sale, visitor } = state;
  const known = await lines.read(sale, visitor);
  if (state.sale?.sale_id !== sale.sale_id || state.visitor !== visitor) return;
  Object.assign(state, known);
  const requestId = state.entry?.state === 'OFFERED' ? state.entry.request_id ?? null : null;
  if (requestId === null || state.purchase?.requestId === requestId) return;
  state.purchase = { sale: sale.sale_id, pays: sale.pay_within_s !== null, requestId, step: 'queued', isOffer: true };
  keep();
  listenFor(requestId);
}

/** The visitor entered or left; `entry` is what the answer said, undefined: it is read again. */
function acted(entry) {
  lines.forget();
  if (entry) {
    lines.take(entry);
    state.entry = entry;
    draw();
  }
  readAgain();
}

/** The sale that is shown: the one that was asked for, else one of the drop that was, else the demo sale, else the first. */
function chosenSale(sales) {
  const byId = (id) => sales.find((sale) => sale.sale_id === id);
  const ofDrop = wanted.drop ? sales.filter((sale) => sale.drop_id === wanted.drop) : [];
  const first = firstLot(ofDrop, (sale) => lacking(sale.needs, { tier: state.visitor?.tier }) === null);
  // It stays while it is there: another size is chosen by a person.
  if (first) wanted.sale ??= first.sale_id;
  return byId(wanted.sale) ?? first ?? byId('demo') ?? sales[0] ?? null;
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
      state.sale = chosenSale(state.sales);
    }
    if (crowd.status === 200) state.crowd = crowd.body.crowd;
    if (state.sale) await Promise.all([readClock(state.sale.sale_id), readDrop(), readLine()]);
    draw();
  }
  clearTimeout(timer);
  timer = setTimeout(read, state.crowd.running ? EVERY_MS / 3 : EVERY_MS);
}

learn({ ...dictionary, ...lineWords });
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
