// What the audit has written down: its runs and findings. Acts of people that an earlier version wrote there are shown as they are.

import { get } from './api.js';
import { h, say, show } from './dom.js';
import { count, t, time } from './words.js';

function findings(run) {
  if (!run.findings.length) return '–';
  const item = (finding) => h('li', {}, h('span', { class: 'badge' }, finding.code), ' ', finding.request_id ? h('code', {}, finding.request_id) : null, ' ', h('span', { class: 'small' }, finding.detail));
  return h('details', { open: !run.consistent }, h('summary', {}, t('n-findings', { n: run.findings.length })), h('ul', { class: 'plain-list findings' }, run.findings.slice(0, 100).map(item)));
}

function row(run) {
  const act = run.sheet?.act;
  const what = act ? t(`act-${act}`) : run.sale_id ?? t('all-sales');
  return h('tr', {},
    h('th', { scope: 'row' }, time(run.started_at_ms), h('div', { class: 'quiet small' }, `${count(run.ended_at_ms - run.started_at_ms)} ms`)),
    h('td', { 'data-label': t('what') }, what, act ? h('div', { class: 'quiet small' }, run.sheet.by) : null),
    h('td', { 'data-label': t('result') }, run.consistent ? h('span', { class: 'badge good' }, `✓ ${t('in-order')}`) : h('span', { class: 'badge bad' }, `✗ ${t('not-in-order')}`)),
    h('td', { 'data-label': t('examined-count'), class: 'num' }, count(run.examined_count)),
    h('td', { 'data-label': t('findings') }, findings(run)));
}

export function auditsView() {
  const body = h('tbody', { id: 'audits' });
  const problem = h('p', { class: 'note bad', role: 'alert', hidden: true });
  async function load() {
    try {
      const { runs } = await get('/audits?limit=50');
      problem.hidden = true;
      show(body, runs.length ? runs.map(row) : h('tr', {}, h('td', { colspan: 5, class: 'quiet empty' }, t('no-audits'))));
    } catch (error) {
      say(problem, error.message);
      problem.hidden = false;
    }
  }
  load();
  const head = ['when', 'what', 'result', 'examined-count', 'findings'].map((key) => h('th', { scope: 'col' }, t(key)));
  return {
    title: t('audits'),
    element: h('div', { class: 'view' }, h('div', { class: 'spread' }, h('h1', {}, t('audits')), h('button', { type: 'button', on: { click: load } }, t('refresh'))),
      h('p', { class: 'quiet' }, t('audits-words')), problem,
      h('div', { class: 'card' }, h('table', { class: 'stack' }, h('caption', { class: 'visually-hidden' }, t('audits')), h('thead', {}, h('tr', {}, head)), body))),
  };
}
