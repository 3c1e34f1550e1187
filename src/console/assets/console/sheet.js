// The balance sheet of one sale: the equations, the acceptance numbers, what is wrong and what to do about it.

import { get, serverNow } from './api.js';
import { h, show } from './dom.js';
import { count, has, t, time } from './words.js';

/** The codes that the command line, the metrics and the runbook use. */
const CODES = { LEAK: 'P5-RC1', OVER_SELL: 'P5-RC2', ORPHAN: 'P5-RC3', GAP: 'P5-RC4' };
const NAMES = ['granted', 'withdrawn', 'withdrawals', 'granted_in_redis', 'grants_open', 'redis_stock', 'in_transit', 'accepted', 'accepted_ordered', 'accepted_failed', 'in_flight', 'parked', 'leaked', 'gaps', 'gaps_held', 'written_off', 'failed_held', 'refused', 'correction', 'landed_since', 'database_stock', 'ordered', 'without_outcome', 'flow', 'returned', 'unpaid', 'paid', 'expired', 'cancelled', 'paid_orders', 'payments_applied', 'payments_unmatched'];
const BUYERS_SHOWN = 100;

function table(caption, columns, rows) {
  return h('table', { class: 'stack' }, h('caption', { class: 'visually-hidden' }, caption), h('thead', {}, h('tr', {}, columns.map((key) => h('th', { scope: 'col' }, t(key))))), h('tbody', {}, rows));
}

function equations(sheet) {
  const rows = sheet.equations.map((equation) => h('tr', { class: equation.holds ? '' : 'broken' },
    h('th', { scope: 'row' }, has(`eq-${equation.name}`) ? t(`eq-${equation.name}`) : equation.name),
    h('td', { 'data-label': t('left-side'), class: 'num' }, count(equation.left)),
    h('td', { 'data-label': t('right-side'), class: 'num' }, count(equation.right)),
    h('td', { 'data-label': t('difference') }, equation.holds ? h('span', { class: 'badge good' }, `✓ ${t('holds')}`) : h('span', { class: 'badge bad num' }, `${equation.difference > 0 ? '+' : ''}${count(equation.difference)}`))));
  return table(t('sheet'), ['equation', 'left-side', 'right-side', 'difference'], rows);
}

const runs = (gaps) => gaps.map(([first, last]) => (first === last ? count(first) : `${count(first)}–${count(last)}`)).join(', ');

/** For each epoch and bucket: number = outcomes + undecided + numbers without a fate. */
function numbers({ series }) {
  if (!series.length) return null;
  const row = (of) => h('tr', { class: of.gaps.length ? 'broken' : '' },
    h('th', { scope: 'row' }, t('epoch-bucket', { epoch: of.epoch, bucket: of.shard })),
    h('td', { 'data-label': t('last-number'), class: 'num' }, count(of.number)),
    h('td', { 'data-label': t('outcomes'), class: 'num' }, count(of.outcomes)),
    h('td', { 'data-label': t('undecided'), class: 'num' }, count(of.undecided)),
    h('td', { 'data-label': t('gaps') }, of.gaps.length ? h('span', { class: 'badge bad num' }, runs(of.gaps)) : '–'),
    h('td', { 'data-label': t('closed-gaps'), class: 'num' }, count(of.closed)));
  const columns = ['epoch-and-bucket', 'last-number', 'outcomes', 'undecided', 'gaps', 'closed-gaps'];
  return h('details', { id: 'numbers', open: series.some((of) => of.gaps.length > 0) }, h('summary', {}, t('numbers')), table(t('numbers'), columns, series.map(row)));
}

function findings(audit) {
  if (!audit.findings.length) return null;
  const item = (finding) => h('li', {}, h('span', { class: 'badge bad' }, CODES[finding.kind] ? `${CODES[finding.kind]} ${finding.kind}` : finding.kind), ' ', finding.request_id ? h('code', {}, finding.request_id) : null, ' ', finding.detail);
  const kinds = [...new Set(audit.findings.map((finding) => finding.kind))].filter((kind) => has(`do-${kind}`));
  return h('div', {}, h('h3', {}, t('findings')), h('ul', { class: 'plain-list findings' }, audit.findings.map(item)),
    audit.findings_left_out_count ? h('p', { class: 'quiet' }, t('more-findings', { n: audit.findings_left_out_count })) : null,
    h('h3', {}, t('what-to-do')), h('ul', { class: 'plain-list', id: 'what-to-do' }, kinds.map((kind) => h('li', {}, h('strong', {}, CODES[kind] ?? kind), ' ', t(`do-${kind}`)))));
}

/** Who the requests without a fate can be, as far as Redis remembers. */
function buyers(suspects) {
  if (!suspects.length) return null;
  const item = (one) => h('li', {}, h('code', {}, one.request_id), ' ', one.user_id, ' ', h('span', { class: 'quiet small' }, t('n-units', { n: count(one.units) })));
  return h('details', { id: 'suspects' }, h('summary', {}, t('suspects', { n: count(suspects.length) })), h('ul', { class: 'plain-list' }, suspects.slice(0, BUYERS_SHOWN).map(item)),
    suspects.length > BUYERS_SHOWN ? h('p', { class: 'quiet' }, t('more-findings', { n: count(suspects.length - BUYERS_SHOWN) })) : null);
}

function everything({ counted: c }) {
  return h('dl', { class: 'facts compact' }, NAMES.map((name) => [h('dt', {}, t(`counted-${name}`)), h('dd', { class: 'num' }, count(c[name]))]));
}

/** In order only when every equation holds and nothing was found; and never as if both sides had been compared when they were not. */
function verdict({ consistent, audit, equations: all }) {
  const { in_redis, bridged, correction } = audit.counted;
  const good = consistent && all.every((equation) => equation.holds) && !audit.findings.length;
  if (!good) return h('p', { class: 'note bad', id: 'verdict' }, `✗ ${t('inconsistent')}`);
  if (in_redis && !bridged) return h('p', { class: 'note warn', id: 'verdict' }, t('not-compared'));
  return h('p', { class: 'note good', id: 'verdict' }, `✓ ${t('consistent')}`, correction ? ` ${t('corrected', { n: count(correction) })}` : null);
}

/** The sheet with its button; `told` gets everything that was counted. */
export function sheetCard(id, told) {
  const result = h('div', { id: 'sheet', 'aria-live': 'polite' }, h('p', { class: 'quiet' }, t('sheet-words')));
  const go = h('button', { type: 'button', id: 'check-sheet' }, t('check-now'));
  go.addEventListener('click', load);
  async function load() {
    go.disabled = true;
    go.setAttribute('aria-busy', 'true');
    try {
      const sheet = await get(`/sales/${encodeURIComponent(id)}/audit`);
      const { audit } = sheet;
      told(audit.counted);
      show(result, verdict(sheet), equations(sheet), findings(audit), buyers(sheet.suspects), numbers(audit),
        h('details', {}, h('summary', {}, t('counted')), everything(audit)),
        h('p', { class: 'quiet small' }, t('examined', { n: count(audit.examined_count), at: time(serverNow()) })));
    } catch (error) {
      show(result, h('p', { class: 'note bad', role: 'alert' }, error.message));
    }
    go.disabled = false;
    go.removeAttribute('aria-busy');
  }
  return { element: h('section', { class: 'card pad' }, h('div', { class: 'spread' }, h('h2', {}, t('sheet')), go), result), load };
}
