// One drop: its sales as far as they are, and what is done to all of them or between them.

import { post, serverNow } from './api.js';
import { confirm, confirmByName, toast } from './dialog.js';
import { field, h, say, show } from './dom.js';
import { limitWords } from './drops.js';
import { number, numberOrNull, text } from './inputs.js';
import { reading, table } from './list.js';
import { needed } from './needs.js';
import { guarded } from './roles.js';
import { burnDown, hiddenBadge, statusBadge } from './sales.js';
import { timetable } from './timetable.js';
import { moveUnits, withdrawFrom } from './units.js';
import { count, price, shortTime, t, time } from './words.js';

/** Title and limit stay from this long before the first start. */
const START_SETTLED_MS = 30_000;
const COLUMNS = ['sale', 'status', 'sold', 'remaining', 'price', 'window', 'needs', 'timetable'];
const path = (id, act) => `/drops/${encodeURIComponent(id)}/${act}`;

const closeForGood = (id, done) => confirmByName({
  id, title: t('drop-close-title', { drop: id }), words: t('drop-close-words'), action: t('close'),
  work: async () => done(await post(path(id, 'close')), t('drop-done')),
});

/** Another title or limit. Sends what was changed. */
function editDrop(drop, done) {
  const [title, limit] = [text({ maxlength: 200, value: drop.title }), number({ min: 1, value: drop.limit ?? '' })];
  return confirm({
    title: t('edit-title', { sale: drop.drop_id }), action: t('save'),
    body: h('div', { class: 'stackable' }, h('p', {}, t('drop-edit-words')),
      h('div', { class: 'grid' }, field('edit-drop-title', t('drop-title'), title, t('sale-title-hint')), field('edit-drop-limit', t('drop-limit'), limit, t('drop-limit-hint')))),
    work: async () => {
      const wanted = { title: title.value, limit: numberOrNull(limit) };
      const changed = Object.entries(wanted).filter(([name, value]) => value !== drop[name]);
      if (!changed.length) throw new Error(t('nothing-changed'));
      done(await post(path(drop.drop_id, 'edit'), Object.fromEntries(changed)), t('drop-edited'));
    },
  });
}

/** What is done to one sale after the other; those that failed are named, and the dialog stays. */
const each = (name, id, done) => confirm({
  title: t(`drop-${name}-title`, { drop: id }), body: t('drop-each-words'), action: t(name), danger: name === 'pause' || name === 'hide',
  work: async () => {
    const answer = await post(path(id, name));
    const failed = answer.sales.filter((sale) => sale.problem !== null);
    done(answer.drop, failed.length ? '' : t('drop-done'));
    if (failed.length) throw new Error(failed.map((sale) => `${sale.sale_id}: ${sale.problem}`).join('\n'));
  },
});

/** The acts that at least one sale can take now, in their order: a name, the class of its button, what it does with the drop of that moment. */
function offers(drop, done) {
  const id = drop.drop_id;
  const any = (test) => drop.progress.some((sale, at) => test(sale, drop.sales[at]));
  const open = any((sale) => sale.status !== 'closed');
  const first = Math.min(...drop.sales.map((sale) => Date.parse(sale.starts_at)));
  const sells = (sale) => sale.status === 'warmed' || sale.status === 'paused';
  const all = (name, kind, possible) => [name, kind, possible, () => each(name, id, done)];
  return [
    all('warm', 'primary', any((sale) => sale.status === 'draft')), all('resume', 'primary', any((sale) => sale.status === 'paused')), all('pause', '', any((sale) => sale.status === 'warmed')),
    all('publish', 'primary', any((sale, terms) => terms.hidden && sale.status !== 'closed')), all('hide', '', any((sale, terms) => !terms.hidden && sale.status !== 'closed')),
    ['edit', '', open && serverNow() + START_SETTLED_MS < first, (now) => editDrop(now, done)],
    ['move', '', drop.sales.length > 1 && any(sells), (now) => moveUnits(now, (words, next) => done(next, words))],
    ['withdraw', '', any(sells), (now) => withdrawFrom(now, (words) => done(null, words))],
    ['close', 'danger', open, () => closeForGood(id, done)],
  ].filter(([, , possible]) => possible);
}

/** A sale of the drop; `flow` is what the pipeline says of it, if it does. */
function row(terms, progress, flow) {
  const sale = { ...terms, status: progress.status, stock: progress.unsold, starts_at_ms: Date.parse(terms.starts_at), ends_at_ms: Date.parse(terms.ends_at) };
  const sold = flow ?? { granted: progress.granted, admitted: null, landed: progress.granted - progress.unsold, failed: 0 };
  const cell = (key, ...content) => h('td', { 'data-label': t(key) }, content);
  return h('tr', { data: { sale: terms.sale_id } },
    h('th', { scope: 'row' }, h('a', { href: `#/sale/${encodeURIComponent(terms.sale_id)}` }, terms.title), h('div', { class: 'quiet small' }, terms.sale_id)),
    cell('status', h('span', { class: 'row tight' }, statusBadge(sale, flow && progress.status !== 'draft' ? flow.state : undefined, flow?.remaining), hiddenBadge(sale))),
    cell('sold', h('div', {}, burnDown(sold), h('div', { class: 'small num' }, `${count(sold.landed)} / ${count(sold.granted)}`))),
    cell('remaining', h('span', { class: 'num' }, count(flow?.remaining))),
    cell('price', h('div', { class: 'nowrap' }, price(terms.price_cents, terms.currency), terms.limit === null ? null : h('div', { class: 'quiet small' }, t('limit-of-sale', { n: count(terms.limit) })))),
    cell('window', h('div', {}, [sale.starts_at_ms, sale.ends_at_ms].map((ms) => h('div', { class: 'small nowrap', title: time(ms) }, shortTime(ms, serverNow()))))),
    cell('needs', terms.needs === null ? '–' : h('span', { class: 'badge blue wrap' }, needed(terms.needs))),
    cell('timetable', timetable(terms, progress.releases_given)));
}

export function dropView(id) {
  const head = h('div', { class: 'row', id: 'drop-head' });
  const actions = h('div', { class: 'row', id: 'actions' });
  const note = h('p', { class: 'quiet', id: 'drop-note', hidden: true });
  const body = h('tbody', { id: 'drop-sales' });
  let flows = {};
  let drop = null;
  let shown = '';
  function draw() {
    // A person in the middle of the table keeps the place.
    if (!drop || body.contains(document.activeElement)) return;
    show(body, drop.sales.map((terms, at) => row(terms, drop.progress[at], flows[terms.sale_id])));
  }
  function take(next, said) {
    drop = next ?? drop;
    const offered = offers(drop, take);
    // The buttons stay while they are the same: a keyboard keeps its place.
    const key = JSON.stringify([drop.title, drop.limit, offered.map(([name]) => name)]);
    if (key !== shown) {
      shown = key;
      show(head, h('h1', {}, drop.title), h('span', { class: 'badge' }, limitWords(drop.limit)), drop.limit_by === 'person' ? h('span', { class: 'badge blue' }, t('of-persons')) : '', h('code', {}, drop.drop_id));
      show(actions, offered.map(([name, kind, , act]) => guarded('operate', h('button', { type: 'button', id: `do-${name}`, class: kind, on: { click: () => act(drop) } }, t(name)))));
      note.hidden = offered.length > 0;
      say(note, offered.length ? '' : t('drop-archive-words', { drop: drop.drop_id }));
    }
    draw();
    if (said) toast(said);
    if (next === null) read.now();
  }
  const read = reading(`/drops/${encodeURIComponent(id)}`, (answer) => take(answer));
  return {
    title: id,
    element: h('div', { class: 'view' }, h('p', {}, h('a', { href: '#/drops' }, `← ${t('drops')}`)), head, read.problem, actions, note, table(t('sales'), COLUMNS, body)),
    close: read.close,
    update({ history }) {
      flows = history.at(-1)?.perSale ?? {};
      draw();
    },
  };
}
