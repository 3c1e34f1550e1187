// The dead-letter desk: what is parked and why, its message, replay and give up. Both ask the database first, and both show
// what would happen (a dry run) before they may be pressed.

import { get, operator, post } from './api.js';
import { confirm, toast } from './dialog.js';
import { field, h, say, show } from './dom.js';
import { guarded } from './roles.js';
import { webhooksCard } from './webhooks.js';
import { count, has, t, time } from './words.js';

const ACT_TIMEOUT_MS = 600_000;
const TROUBLE = ['not_parked', 'unreadable', 'conflict', 'unknown_sale', 'failed', 'not_tried'];

function pretty(payload) {
  try {
    return JSON.stringify(JSON.parse(payload), null, 2);
  } catch {
    return payload;
  }
}

/** What became (or would become) of each request. */
function results(report) {
  const row = (done) => h('tr', {},
    h('th', { scope: 'row' }, h('code', {}, done.request_id ?? done.entries.join(' '))),
    h('td', { 'data-label': t('result') }, h('span', { class: `badge ${TROUBLE.includes(done.result) ? 'bad' : 'good'}` }, t(`deed-${done.result}`))),
    h('td', { 'data-label': t('detail'), class: 'small' }, done.detail));
  if (!report.done.length) return h('p', { class: 'quiet' }, t('nothing-parked'));
  const head = ['request', 'result', 'detail'].map((key) => h('th', { scope: 'col' }, t(key)));
  return h('div', { class: 'scroll' }, h('table', { class: 'stack' }, h('caption', { class: 'visually-hidden' }, t('dry-run')), h('thead', {}, h('tr', {}, head)), h('tbody', {}, report.done.slice(0, 200).map(row))));
}

/** The dialog of an act: a dry run first, then the button. */
async function act(name, which, done) {
  const body = { ...which, by: operator() };
  const reason = h('textarea', { rows: 3, maxlength: 500, required: true });
  const preview = h('div', { id: 'preview', 'aria-live': 'polite' }, h('p', { class: 'quiet' }, t('dry-run-first')));
  const run = h('button', { type: 'button', id: 'dry-run' }, t('dry-run'));
  const filled = () => (name === 'give-up' ? { ...body, reason: reason.value.trim() || '-' } : body);
  run.addEventListener('click', async () => {
    run.disabled = true;
    try {
      const report = await post(`/dlq/${name}`, { ...filled(), dry_run: true }, ACT_TIMEOUT_MS);
      show(preview, h('p', { class: 'note' }, t('dry-run-done', { n: report.done.length, trouble: report.trouble })), results(report));
      document.getElementById('dialog-yes').disabled = false;
    } catch (error) {
      show(preview, h('p', { class: 'note bad', role: 'alert' }, error.message));
    }
    run.disabled = false;
  });
  await confirm({
    title: t(`${name}-dlq-title`),
    body: h('div', { class: 'stackable' }, h('p', {}, t(`${name}-dlq-words`)), name === 'give-up' ? field('reason', t('reason-why'), reason, t('reason-hint')) : null, h('div', { class: 'row' }, run), preview),
    action: t(name === 'replay' ? 'replay-now' : 'give-up-now'),
    danger: name === 'give-up',
    ready: false,
    work: async () => {
      if (name === 'give-up' && !reason.value.trim()) throw new Error(t('reason-needed'));
      const report = await post(`/dlq/${name}`, filled(), ACT_TIMEOUT_MS);
      done(report);
    },
  });
}

function entryRow(entry, chosen, redraw) {
  const tick = h('input', { type: 'checkbox', 'aria-label': t('choose', { entry: entry.entry }), checked: chosen.has(entry.entry) });
  tick.addEventListener('change', () => {
    if (tick.checked) chosen.add(entry.entry);
    else chosen.delete(entry.entry);
    redraw();
  });
  const [place] = entry.entry.split('/');
  const [code, ...rest] = entry.reason.split(': ');
  return h('tr', { data: { entry: entry.entry, request: entry.request_id ?? '' } },
    h('td', { class: 'tick' }, tick),
    h('th', { scope: 'row' }, h('code', {}, entry.request_id ?? t('unreadable')), h('div', { class: 'quiet small' }, `${t(`place-${place}`)} · ${entry.entry}`)),
    h('td', { 'data-label': t('sale') }, entry.sale_id ?? '–', h('div', { class: 'quiet small' }, entry.user_id ?? '')),
    h('td', { 'data-label': t('reason') }, h('strong', {}, has(`reason-${code}`) ? t(`reason-${code}`) : code), rest.length ? h('div', { class: 'quiet small' }, rest.join(': ')) : null),
    h('td', { 'data-label': t('attempts'), class: 'num' }, count(entry.attempts)),
    h('td', { 'data-label': t('since'), class: 'small' }, time(entry.parked_at_ms)),
    h('td', { 'data-label': t('database-says') }, entry.fate ? h('span', { class: 'badge blue' }, entry.fate) : h('span', { class: 'badge' }, t('undecided'))),
    h('td', { 'data-label': t('message') }, h('details', {}, h('summary', {}, t('show')), h('pre', { class: 'payload' }, pretty(entry.payload)))));
}

export function dlqView() {
  const chosen = new Set();
  const body = h('tbody', { id: 'parked' });
  const problem = h('p', { class: 'note bad', role: 'alert', hidden: true });
  const counts = h('p', { class: 'row', id: 'dlq-counts' });
  const outcome = h('section', { class: 'card pad', id: 'outcome', hidden: true, tabindex: '-1' });
  const source = h('select', {}, [['', 'all-sources'], ['relay', 'place-relay'], ['mq', 'place-mq']].map(([value, key]) => h('option', { value }, t(key))));
  const refresh = h('button', { type: 'button', id: 'refresh', on: { click: () => load() } }, t('refresh'));
  const replay = h('button', { type: 'button', class: 'primary', id: 'replay', on: { click: () => act('replay', which(), finished) } }, t('replay'));
  const giveUp = h('button', { type: 'button', class: 'danger', id: 'give-up', on: { click: () => act('give-up', which(), finished) } }, t('give-up'));
  const everything = h('input', { type: 'checkbox', id: 'choose-all', 'aria-label': t('choose-all') });
  let listing = { entries: [], counts: {} };
  const which = () => (everything.checked ? { all: true, ...(source.value ? { source: source.value } : {}) } : { named: [...chosen] });
  everything.addEventListener('change', () => {
    chosen.clear();
    if (everything.checked) listing.entries.forEach((entry) => chosen.add(entry.entry));
    draw();
  });
  function armed() {
    replay.disabled = chosen.size === 0;
    giveUp.disabled = chosen.size === 0;
    for (const button of [replay, giveUp]) guarded('operate', button);
    if (chosen.size < listing.entries.length) everything.checked = false;
    say(replay, chosen.size ? t('replay-n', { n: chosen.size }) : t('replay'));
    say(giveUp, chosen.size ? t('give-up-n', { n: chosen.size }) : t('give-up'));
  }
  function draw() {
    const { entries, counts: c, more } = listing;
    show(body, entries.length ? entries.map((entry) => entryRow(entry, chosen, armed)) : h('tr', {}, h('td', { colspan: 8, class: 'quiet empty' }, `✓ ${t('nothing-parked')}`)));
    show(counts, ['relay', 'mq', 'register'].map((place) => h('span', { class: `badge ${c[place] > 0 ? 'warn' : ''}` }, `${t(`place-${place}`)}: ${count(c[place])}`)), more ? h('span', { class: 'quiet' }, t('there-is-more')) : null);
    armed();
  }
  function finished(report) {
    show(outcome, h('h2', {}, t('outcome')), report.trouble ? h('p', { class: 'note warn' }, t('with-trouble', { n: report.trouble })) : h('p', { class: 'note good' }, `✓ ${t('without-trouble')}`), results(report));
    outcome.hidden = false;
    toast(t('acted', { n: report.done.length }), report.trouble ? 'warn' : 'good');
    chosen.clear();
    everything.checked = false;
    load();
  }
  async function load() {
    refresh.disabled = true;
    try {
      listing = await get(`/dlq${source.value ? `?source=${source.value}` : ''}`);
      const there = new Set(listing.entries.map((entry) => entry.entry));
      for (const entry of [...chosen]) if (!there.has(entry)) chosen.delete(entry);
      problem.hidden = true;
      draw();
    } catch (error) {
      say(problem, error.message);
      problem.hidden = false;
    }
    refresh.disabled = false;
  }
  source.addEventListener('change', () => { chosen.clear(); load(); });
  const webhooks = webhooksCard();
  armed();
  load();
  webhooks.load();
  const head = ['request', 'sale', 'reason', 'attempts', 'since', 'database-says', 'message'].map((key) => h('th', { scope: 'col' }, t(key)));
  return {
    title: t('dlq'),
    element: h('div', { class: 'view' }, h('h1', {}, t('dlq')), h('p', { class: 'quiet' }, t('dlq-words')), counts,
      h('div', { class: 'spread' }, h('div', { class: 'row' }, replay, giveUp), h('div', { class: 'row' }, h('label', { class: 'visually-hidden', for: 'source' }, t('source')), Object.assign(source, { id: 'source' }), refresh)),
      problem, outcome,
      h('div', { class: 'card' }, h('table', { class: 'stack' }, h('caption', { class: 'visually-hidden' }, t('dlq')), h('thead', {}, h('tr', {}, h('th', { scope: 'col' }, everything), head)), body)), webhooks.element),
  };
}
