// The register of failures: everything that will never be an order, and what still waits for its fate.

import { get } from './api.js';
import { h, say, show } from './dom.js';
import { count, has, t, time } from './words.js';

const KINDS = { open: 'warn', failed_final: 'bad', resolved: 'good' };

function row(entry) {
  const cell = (key, ...content) => h('td', { 'data-label': t(key) }, content);
  return h('tr', { data: { request: entry.request_id } },
    h('th', { scope: 'row' }, h('code', {}, entry.request_id), h('div', { class: 'quiet small' }, time(entry.created_at_ms))),
    cell('status', h('span', { class: `badge ${KINDS[entry.status]}` }, t(`register-${entry.status}`))),
    cell('sale', entry.sale_id, h('div', { class: 'quiet small' }, `${entry.user_id} · ${t('n-units', { n: count(entry.quantity) })}`)),
    cell('reason', h('strong', {}, has(`reason-${entry.reason}`) ? t(`reason-${entry.reason}`) : entry.reason), entry.detail ? h('div', { class: 'quiet small' }, entry.detail) : null),
    cell('reported-by', entry.source),
    cell('closed-by', entry.resolved_by ? `${entry.resolved_by}` : '–', entry.resolved_at_ms ? h('div', { class: 'quiet small' }, time(entry.resolved_at_ms)) : null),
    cell('message', h('details', {}, h('summary', {}, t('show')), h('pre', { class: 'payload' }, entry.payload))));
}

export function registerView() {
  const body = h('tbody', { id: 'register' });
  const problem = h('p', { class: 'note bad', role: 'alert', hidden: true });
  const status = h('select', { id: 'register-status' }, ['', 'open', 'failed_final', 'resolved'].map((value) => h('option', { value }, t(value ? `register-${value}` : 'all'))));
  const more = h('button', { type: 'button', hidden: true }, t('more'));
  let rows = [];
  async function load(after) {
    more.disabled = true;
    try {
      const query = new URLSearchParams({ limit: '100' });
      if (status.value) query.set('status', status.value);
      if (after) query.set('after', after);
      const page = await get(`/register?${query}`);
      rows = after ? [...rows, ...page.rows] : page.rows;
      more.hidden = !page.more;
      problem.hidden = true;
      show(body, rows.length ? rows.map(row) : h('tr', {}, h('td', { colspan: 7, class: 'quiet empty' }, `✓ ${t('register-empty')}`)));
    } catch (error) {
      say(problem, error.message);
      problem.hidden = false;
    }
    more.disabled = false;
  }
  more.addEventListener('click', () => load(rows.at(-1)?.request_id));
  status.addEventListener('change', () => load());
  load();
  const head = ['request', 'status', 'sale', 'reason', 'reported-by', 'closed-by', 'message'].map((key) => h('th', { scope: 'col' }, t(key)));
  return {
    title: t('register'),
    element: h('div', { class: 'view' }, h('div', { class: 'spread' }, h('h1', {}, t('register')),
      h('div', { class: 'row' }, h('label', { class: 'visually-hidden', for: 'register-status' }, t('status')), status, h('button', { type: 'button', on: { click: () => load() } }, t('refresh')))),
    h('p', { class: 'quiet' }, t('register-words')), problem,
    h('div', { class: 'card' }, h('table', { class: 'stack' }, h('caption', { class: 'visually-hidden' }, t('register')), h('thead', {}, h('tr', {}, head)), body)), more),
  };
}
