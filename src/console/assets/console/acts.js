// What people did to the system, newest first: who, what, to what, and how it ended.

import { get } from './api.js';
import { field, h, say, show } from './dom.js';
import { has, t, time } from './words.js';

const PAGE = 50;

/** What an act wrote down before and after, as text. */
function details(act) {
  const line = (word) => h('li', {}, word);
  const json = (key, value) => (value === null || value === undefined ? null : `${t(key)}: ${JSON.stringify(value)}`);
  const words = [act.code, act.reason, json('act-before', act.before), json('act-after', act.after), act.request_id ? `X-Request-Id: ${act.request_id}` : null].filter(Boolean);
  return words.length ? h('details', {}, h('summary', {}, t('act-about')), h('ul', { class: 'plain-list findings' }, words.map(line))) : '–';
}

function target(act) {
  const words = `${act.target_type} ${act.target_id}`;
  return act.target_type === 'request' ? h('a', { href: `#/order/${encodeURIComponent(act.target_id)}` }, words) : words;
}

function row(act) {
  const ok = act.outcome === 'ok';
  const cell = (key, ...content) => h('td', { 'data-label': t(key) }, content);
  return h('tr', { data: { act: act.act_id } },
    h('th', { scope: 'row' }, time(act.at_ms)),
    cell('who', act.actor_name || act.actor_id, h('div', { class: 'quiet small' }, [act.auth_method, act.ip].filter(Boolean).join(' · '))),
    cell('what', h('strong', {}, has(`act-${act.action}`) ? t(`act-${act.action}`) : act.action), h('div', { class: 'small' }, target(act))),
    cell('sale', act.sale_id ?? '–'),
    cell('result', h('span', { class: ok ? 'badge good' : 'badge bad' }, ok ? `✓ ${t('act-done')}` : `✗ ${t('act-not-done')}`)),
    cell('detail', details(act)));
}

export function actsView() {
  const body = h('tbody', { id: 'acts' });
  const problem = h('p', { class: 'note bad', role: 'alert', hidden: true });
  const more = h('button', { type: 'button', hidden: true }, t('more'));
  const sale = h('input', { type: 'text', maxlength: 64, autocomplete: 'off', spellcheck: 'false', pattern: '[A-Za-z0-9_\\-]{0,64}' });
  let rows = [];
  async function load(before) {
    more.disabled = true;
    try {
      const query = new URLSearchParams({ limit: String(PAGE) });
      if (sale.value.trim()) query.set('sale_id', sale.value.trim());
      if (before) query.set('before', before);
      const { acts } = await get(`/acts?${query}`);
      rows = before ? [...rows, ...acts] : acts;
      more.hidden = acts.length < PAGE;
      problem.hidden = true;
      show(body, rows.length ? rows.map(row) : h('tr', {}, h('td', { colspan: 6, class: 'quiet empty' }, t('no-acts'))));
    } catch (error) {
      say(problem, error.message);
      problem.hidden = false;
    }
    more.disabled = false;
  }
  more.addEventListener('click', () => load(rows.at(-1)?.act_id));
  const form = h('form', { class: 'row', id: 'find-acts' }, field('acts-sale', t('sale-id'), sale), h('button', { type: 'submit' }, t('find')));
  form.addEventListener('submit', (event) => { event.preventDefault(); load(); });
  load();
  const head = ['when', 'who', 'what', 'sale', 'result', 'detail'].map((key) => h('th', { scope: 'col' }, t(key)));
  return {
    title: t('acts'),
    element: h('div', { class: 'view' }, h('h1', {}, t('acts')), h('p', { class: 'quiet' }, t('acts-words')), form, problem,
      h('div', { class: 'card' }, h('table', { class: 'stack' }, h('caption', { class: 'visually-hidden' }, t('acts')), h('thead', {}, h('tr', {}, head)), body)), h('div', { class: 'row' }, more)),
  };
}
