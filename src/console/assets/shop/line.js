// The line of a sale, a raffle or a waiting list: entering it, what becomes of the entry, its offer, and how a draw is checked.

import { call } from './buy.js';
import { drawCheck } from './draw-check.js';
import { field, h, say, show } from './dom.js';
import { countdown } from './orders.js';
import { count, has, shortTime, t } from './words.js';

const TRIES = 4;
const pause = (ms) => new Promise((resolve) => { setTimeout(resolve, ms); });
const path = (sale) => `/v1/sales/${encodeURIComponent(sale.sale_id)}/entries`;

/** Whether the units of a sale go by its line at this moment, and not to who clicks. */
export const goesByLine = (sale, line) => sale.by_line ?? (line !== null && line.kind === 'raffle' && line.state !== 'DONE');

/** What the box is about. */
function modeOf(line, entry, now) {
  if (['OFFERED', 'TAKEN', 'LAPSED'].includes(entry?.state)) return entry.state.toLowerCase();
  const waits = entry?.state === 'WAITING';
  if (waits && line.state === 'DONE') return 'over';
  if (line.kind === 'waitlist') return waits ? 'queued' : line.state === 'OPEN' ? 'join' : 'none';
  if (waits) return line.state === 'OPEN' ? 'entered' : line.state === 'DRAWN' && typeof entry.rank === 'number' ? 'ranked' : 'closed';
  if (line.state === 'OPEN') return line.opens_at && now < Date.parse(line.opens_at) ? 'soon' : 'enter';
  return line.state === 'DONE' ? 'none' : 'shut';
}

/** Most units of an entry; null: the sale does not say. */
function mostUnits({ per_user_limit: limit }, drop) {
  const limits = [limit, drop?.limit].filter((one) => typeof one === 'number');
  return limits.length ? Math.min(...limits) : null;
}

/** The place in the line, in words. */
const place = (entry, first, others) => t(entry.before > 0 ? others : first, { n: count(entry.before), rank: count(entry.rank) });

/** What is said about the line and the entry. */
function words(mode, { line, entry, order }, now) {
  const at = (time) => shortTime(Date.parse(time), now);
  const left = entry?.state === 'LEFT';
  switch (mode) {
    case 'soon': return t('line-soon', { at: at(line.opens_at) });
    case 'enter': return t(left ? 'line-enter-again' : 'line-enter', { at: at(line.closes_at) });
    case 'entered': return t('line-entered', { n: count(entry.quantity), at: at(line.closes_at) });
    case 'closed': return t(line.state === 'SEALED' && line.needs_beacon ? 'line-awaits-text' : 'line-closed');
    case 'ranked': return place(entry, 'line-rank-next', 'line-rank');
    case 'shut': return t(left ? 'line-left' : 'line-shut');
    case 'join': return t(left ? 'line-join-again' : 'line-join');
    case 'queued': return typeof entry.before === 'number' ? place(entry, 'line-next', 'line-before') : t('line-waits');
    case 'lapsed': return has(`lapsed-${entry.reason}`) ? t(`lapsed-${entry.reason}`) : t('line-lapsed');
    case 'offered': return order?.state === 'UNPAID' ? t('line-pay', { n: count(entry.quantity), at: at(order.pay_by) }) : t('line-offered', { n: count(entry.quantity) });
    default: return t(`line-${mode}`);
  }
}

/** What the clock counts down to: words and a time, or nothing. */
function clockOf(mode, { line, order }) {
  if (mode === 'soon') return ['line-opens-in', line.opens_at];
  if (mode === 'enter' || mode === 'entered') return ['line-closes-in', line.closes_at];
  if (mode === 'offered' && order?.state === 'UNPAID') return ['pay-within', order.pay_by];
  return null;
}

/** Asks to enter, again while there is no clear answer: who is in the line already finds the same entry. */
async function enter(sale, token, quantity) {
  let answer;
  for (let n = 1; n <= TRIES; n += 1) {
    answer = await call('POST', path(sale), { token, body: { quantity } });
    // The door of a waiting list opens a moment before its entries are taken.
    const isSoon = [0, 429, 503].includes(answer.status) || answer.body.code === 'LINE_AWAITED';
    if (!isSoon || answer.body.code === 'LINE_FULL') break;
    if (n < TRIES) await pause(Math.min(answer.waitMs, 3000));
  }
  if (answer.status === 409 && answer.body.entry_id) return call('GET', `${path(sale)}/mine`, { token });
  return answer;
}

const sentence = ({ status, body }) => [body.title ?? String(status), body.detail].filter(Boolean).join(': ');

/** The receipt, and a button that copies it. */
function receipt(text) {
  const box = h('input', { type: 'text', readonly: true, value: text, class: 'mono', spellcheck: 'false' });
  const done = h('span', { class: 'small quiet', role: 'status' });
  const copy = h('button', { type: 'button', id: 'copy-receipt' }, t('copy'));
  copy.addEventListener('click', async () => {
    try {
      await navigator.clipboard.writeText(text);
      say(done, t('copied'));
    } catch {
      box.focus();
      box.select();
      say(done, t('copy-by-hand'));
    }
  });
  return h('div', { class: 'receipt' }, field('receipt', t('receipt'), box, t('receipt-hint')), copy, done);
}

/** The box. `acted(entry)` gets the entry that an act made, or undefined when it has to be read again. */
export function lineBox(acted) {
  const title = h('h2', {});
  const status = h('p', { id: 'line-status', 'aria-live': 'polite', tabindex: '-1' });
  const clockWords = h('span', { class: 'quiet' });
  const clock = h('strong', { id: 'line-clock', class: 'num' });
  const clockRow = h('p', { class: 'clock' }, clockWords, clock);
  const parts = h('div', { class: 'line-parts' });
  const problem = h('p', { class: 'note bad', role: 'alert', id: 'line-problem', hidden: true });
  const check = drawCheck();
  const element = h('section', { class: 'line-box', id: 'line', hidden: true, 'aria-label': t('line') }, title, status, clockRow, parts, problem, check.element);
  let now = null;
  let mode = 'none';
  let drawn = '';

  function complain(text) {
    say(problem, text ?? '');
    problem.hidden = !text;
  }

  /** The units that are wanted, and the button. */
  function entryForm(most) {
    const units = h('input', { type: 'number', min: 1, max: most, step: 1, value: 1, inputmode: 'numeric' });
    const fault = h('span', { class: 'fault', id: 'line-units-fault' });
    const go = h('button', { type: 'submit', class: 'primary buy', id: 'enter-line' }, t(mode === 'join' ? 'join-line' : 'enter-line'));
    const hasUnits = most !== 1;
    const box = hasUnits ? field('line-units', t('units-wanted'), units, most === null ? null : t('units-hint', { n: count(most) })) : null;
    box?.append(fault);
    const described = units.getAttribute('aria-describedby');
    function mark(text) {
      say(fault, text ?? '');
      if (text) units.setAttribute('aria-invalid', 'true');
      else units.removeAttribute('aria-invalid');
      units.setAttribute('aria-describedby', [described, text ? fault.id : null].filter(Boolean).join(' '));
      if (text) units.focus();
    }
    // What is wrong is said by the server, in one way for all.
    const form = h('form', { class: 'line-form', novalidate: true }, box, go);
    form.addEventListener('submit', async (event) => {
      event.preventDefault();
      const { sale, visitor } = now;
      go.disabled = true;
      complain(null);
      mark(null);
      const answer = await enter(sale, visitor.token, hasUnits ? Number(units.value) : 1);
      go.disabled = false;
      if (answer.status === 200 || answer.status === 201) return acted(answer.body);
      const isAboutUnits = hasUnits && (answer.status === 422 || answer.body.code === 'P2-R5');
      if (isAboutUnits) mark(answer.body.detail ?? sentence(answer));
      else complain(sentence(answer));
      return acted(undefined);
    });
    return form;
  }

  async function leave() {
    const { sale, visitor, entry } = now;
    complain(null);
    const answer = await call('DELETE', `${path(sale)}/${entry.entry_id}`, { token: visitor.token });
    if (answer.status === 204) return acted({ ...entry, state: 'LEFT' });
    complain(sentence(answer));
    return acted(undefined);
  }

  /** The button to leave; where that is for good it asks first. */
  function leaving(isForGood) {
    const button = (id, key, kind, work) => h('button', { type: 'button', id, class: kind, on: { click: work } }, t(key));
    const row = h('div', { class: 'row' });
    const first = button('leave-line', 'leave-line', '', () => {
      if (!isForGood) return leave();
      show(row, h('span', {}, t('leave-for-good')), button('leave-yes', 'leave-line', 'danger', leave), button('leave-no', 'stay-in-line', '', () => { show(row, first); first.focus(); }));
      return document.getElementById('leave-no').focus();
    });
    show(row, first);
    return row;
  }

  function entryFacts(entry) {
    return [
      h('p', { class: 'small' }, h('span', { class: 'quiet' }, t('entry-id')), ' ', h('code', { id: 'entry-id' }, entry.entry_id)),
      entry.receipt ? receipt(entry.receipt) : null,
    ];
  }

  const toPayment = () => h('button', { type: 'button', class: 'primary', id: 'to-payment', on: { click: () => { document.getElementById('pay')?.focus(); } } }, t('to-payment'));

  function content({ sale, drop, entry, order }) {
    switch (mode) {
      case 'enter':
      case 'join': return [entryForm(mostUnits(sale, drop))];
      case 'entered': return [...entryFacts(entry), leaving(false)];
      case 'closed':
      case 'ranked':
      case 'queued': return [...entryFacts(entry), leaving(true)];
      case 'offered': return [order?.state === 'UNPAID' ? toPayment() : null, ...entryFacts(entry)];
      case 'over':
      case 'taken':
      case 'lapsed': return entryFacts(entry);
      default: return [];
    }
  }

  function tick(nowMs) {
    const until = now && clockOf(mode, now);
    clockRow.hidden = !until;
    if (!until) return;
    say(clockWords, t(until[0]));
    say(clock, countdown(Date.parse(until[1]) - nowMs));
  }

  return {
    element,
    tick,
    update(state, nowMs) {
      const { sale, line, entry, visitor, orders, drop } = state;
      const order = orders.find((one) => one.request_id === entry?.request_id) ?? null;
      now = { sale, line, entry, visitor, order, drop };
      const before = mode;
      mode = sale && line && visitor ? modeOf(line, entry, nowMs) : 'none';
      element.hidden = mode === 'none';
      if (element.hidden) {
        drawn = '';
        return;
      }
      say(title, t(`line-of-${line.kind}`));
      say(status, words(mode, now, nowMs));
      // What a person works in stays until it is about something else.
      const next = JSON.stringify([mode, sale.sale_id, visitor.visitor, entry?.entry_id, mostUnits(sale, drop), order?.state]);
      if (next !== drawn) {
        const hadFocus = parts.contains(document.activeElement);
        drawn = next;
        if (before !== mode) complain(null);
        show(parts, content(now));
        if (hadFocus) status.focus();
      }
      check.update(sale, line, entry);
      tick(nowMs);
    },
  };
}
