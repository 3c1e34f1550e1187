// The line of a sale: how far it is, who is in it, its draw with a text from outside, and how everybody can check the draw.

import { file, get, post, serverNow } from './api.js';
import { confirm } from './dialog.js';
import { field, h, say, show } from './dom.js';
import { reading } from './list.js';
import { guarded } from './roles.js';
import { saveButton } from './save.js';
import { count, has, shortTime, t, time } from './words.js';

const PAGE = 50;
const STATES = ['WAITING', 'OFFERED', 'TAKEN', 'LAPSED', 'LEFT'];
const KINDS = { WAITING: '', OFFERED: 'warn', TAKEN: 'good', LAPSED: 'bad', LEFT: '' };
const COLUMNS = ['entry', 'state', 'line-rank', 'buyer', 'n-wanted', 'request', 'line-entered'];
/** A list of five million ids takes a while. */
const LIST_TIMEOUT_MS = 600_000;

const path = (id, part = '') => `/sales/${encodeURIComponent(id)}/line${part}`;
const moment = (at) => h('span', { class: 'nowrap', title: time(Date.parse(at)) }, shortTime(Date.parse(at), serverNow()));

function entryRow(entry) {
  const cell = (key, ...content) => h('td', { 'data-label': t(key) }, content);
  return h('tr', { data: { entry: entry.entry_id, state: entry.state } },
    h('th', { scope: 'row' }, h('code', {}, entry.entry_id)),
    cell('state', h('span', { class: `badge ${KINDS[entry.state]}` }, t(`entry-${entry.state}`)), entry.reason ? h('div', { class: 'quiet small' }, entry.reason) : null, ' ', entry.state === 'WAITING' && entry.request_id ? h('span', { class: 'badge warn' }, t('entry-in-hand')) : null),
    cell('line-rank', h('span', { class: 'num' }, count(entry.rank))),
    cell('buyer', entry.user_id, entry.person ? h('div', { class: 'quiet small' }, t('person-n', { person: entry.person })) : null),
    cell('n-wanted', h('span', { class: 'num' }, count(entry.quantity))),
    cell('request', entry.request_id ? h('a', { href: `#/order/${encodeURIComponent(entry.request_id)}` }, h('code', {}, entry.request_id)) : '–'),
    cell('line-entered', moment(entry.entered_at)));
}

/** The entries page by page, of all states or of one. */
function entriesTable(id) {
  const body = h('tbody', { id: 'line-entries' });
  const problem = h('p', { class: 'note bad', role: 'alert', hidden: true });
  const state = h('select', { id: 'line-state' }, ['', ...STATES].map((value) => h('option', { value }, t(value ? `entry-${value}` : 'all'))));
  const more = h('button', { type: 'button', id: 'more-entries', hidden: true }, t('more'));
  let rows = [];
  let next = null;
  // Only the answer of the last question is shown.
  let turn = 0;
  async function load(after) {
    turn += 1;
    const mine = turn;
    more.disabled = true;
    try {
      const query = new URLSearchParams({ limit: String(PAGE), ...(state.value ? { state: state.value } : {}), ...(after ? { after } : {}) });
      const page = await get(path(id, `/entries?${query}`));
      if (mine !== turn) return;
      rows = after ? [...rows, ...page.entries] : page.entries;
      next = page.next;
      more.hidden = next === null;
      problem.hidden = true;
      show(body, rows.length ? rows.map(entryRow) : h('tr', {}, h('td', { colspan: COLUMNS.length, class: 'quiet empty' }, t('no-entries'))));
    } catch (error) {
      if (mine !== turn) return;
      say(problem, error.message);
      problem.hidden = false;
    }
    more.disabled = false;
  }
  more.addEventListener('click', () => load(next));
  state.addEventListener('change', () => load());
  load();
  const head = COLUMNS.map((key) => h('th', { scope: 'col' }, t(key)));
  return h('div', { class: 'stackable' },
    h('div', { class: 'spread' }, h('h3', {}, t('line-entries')),
      h('div', { class: 'row' }, h('label', { class: 'visually-hidden', for: 'line-state' }, t('state')), state, h('button', { type: 'button', id: 'refresh-entries', on: { click: () => load() } }, t('refresh')))),
    problem, h('table', { class: 'stack' }, h('caption', { class: 'visually-hidden' }, t('line-entries')), h('thead', {}, h('tr', {}, head)), body), h('div', { class: 'row' }, more));
}

/** Asks for the text that the draw waits for. */
function drawDialog(id, drawn) {
  const beacon = h('input', { type: 'text', required: true, maxlength: 200, autocomplete: 'off', spellcheck: 'false' });
  return confirm({
    title: t('draw-title', { sale: id }), action: t('draw-now'),
    body: h('div', { class: 'stackable' }, h('p', {}, t('draw-words')), field('draw-beacon', t('draw-beacon'), beacon, t('draw-beacon-hint'))),
    work: async () => drawn(await post(path(id, '/draw'), { beacon: beacon.value })),
  });
}

/** What is public of the draw, and its two files. */
function checkCard(id, { draw }) {
  const facts = [['commitment', draw.commitment], ['draw-entries', draw.entries === null ? null : count(draw.entries)], ['draw-digest', draw.digest], ['draw-seed', draw.seed], ['draw-text', draw.beacon], ['draw-sealed', draw.sealed_at && time(Date.parse(draw.sealed_at))], ['draw-drawn', draw.drawn_at && time(Date.parse(draw.drawn_at))]];
  const text = () => new Blob([JSON.stringify(draw)], { type: 'application/json' });
  return h('details', { id: 'draw-check' }, h('summary', {}, t('draw-check')),
    h('div', { class: 'stackable' },
      h('dl', { class: 'facts' }, facts.filter(([, value]) => value).map(([key, value]) => [h('dt', {}, t(key)), h('dd', { class: 'mono' }, value)])),
      h('p', { class: 'quiet small' }, draw.algorithm),
      draw.digest ? [
        h('p', {}, t('draw-check-words')), h('pre', { class: 'payload' }, 'seckill line verify entries.txt --draw draw.json\npython3 docs/verify-draw.py entries.txt draw.json'),
        h('div', { class: 'row' }, saveButton({ id: 'save-draw', words: 'save-draw', name: 'draw.json', blob: text }), saveButton({ id: 'save-list', words: 'save-list', name: 'entries.txt', blob: () => file(path(id, '/list'), LIST_TIMEOUT_MS) })),
      ] : h('p', { class: 'quiet' }, t('draw-later'))));
}

/** The card of a sale's line. `said(words)` says what was done; `close()` ends its reading. */
export function lineCard(id, said) {
  const title = h('div', { class: 'row' });
  const numbers = h('dl', { class: 'figures' });
  const times = h('p', { id: 'line-times' });
  const acts = h('div', { class: 'row' });
  const check = h('div', {});
  let drawn = '';
  function take(line) {
    const { entries, draw } = line;
    const figure = (key, n) => h('div', { class: 'figure' }, h('dt', {}, t(key)), h('dd', { class: 'num', id: `figure-${key}` }, count(n)));
    show(numbers, STATES.map((state) => figure(`entry-${state}`, entries[state.toLowerCase()])), figure('entry-in-hand', line.in_hand), figure('offered-to', line.offered_to_rank));
    // The buttons and what is open stay while nothing else is to be said.
    const next = JSON.stringify([line.state, draw]);
    if (next === drawn) return;
    drawn = next;
    show(title, h('h2', {}, t('line')), h('span', { class: 'badge', id: 'line-kind' }, t(`line-${line.kind}`)), h('span', { class: 'badge blue', id: 'line-state-now', title: line.state }, has(`line-state-${line.state}`) ? t(`line-state-${line.state}`) : line.state));
    show(times, line.closes_at ? [t('line-open-from'), ' ', moment(line.opens_at), ' ', t('line-open-until'), ' ', moment(line.closes_at)] : t('line-no-times'));
    const waits = Boolean(draw?.needs_beacon && !draw.beacon);
    acts.hidden = !waits;
    show(acts, waits && line.state === 'SEALED' ? [h('p', { class: 'note warn' }, t('line-awaits-text')), guarded('operate', h('button', { type: 'button', class: 'primary', id: 'draw-line', on: { click: () => drawDialog(id, (done) => { take(done); said(t('line-drawn')); }) } }, t('draw-now')))] : h('p', { class: 'quiet' }, t('line-will-await')));
    const isOpen = check.firstElementChild?.open;
    show(check, draw ? checkCard(id, line) : '');
    if (isOpen && check.firstElementChild) check.firstElementChild.open = true;
  }
  const read = reading(path(id), take);
  return {
    element: h('section', { class: 'card pad stackable', id: 'line-card' }, title, read.problem, times, numbers, acts, check, entriesTable(id)),
    close: read.close,
  };
}
