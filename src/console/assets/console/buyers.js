// Buyers: who may not buy, and a pass for one who may.

import { get, post } from './api.js';
import { confirm, toast } from './dialog.js';
import { field, h, say, show } from './dom.js';
import { typedFacts } from './facts.js';
import { faults, faultyField } from './faults.js';
import { number, rfc3339, text } from './inputs.js';
import { guarded } from './roles.js';
import { t, time, timeZone } from './words.js';

const PAGE = 100;
const HOUR_S = 3_600;
const BLOCK_CONTROLS = { buyer: 'block-buyer', reason: 'block-reason', ends_at: 'block-ends' };
const PASS_CONTROLS = { sub: 'pass-buyer', sale: 'pass-id', drop: 'pass-id', valid_s: 'pass-hours', facts: 'pass-facts' };
const COLUMNS = ['buyer', 'block-reason', 'blocked-since', 'block-ends', 'act'];
const plain = (props) => text({ autocomplete: 'off', spellcheck: 'false', ...props });

/** A form that is sent by its button: what `work` throws is shown at its field. */
function sent({ id, parts, action, controls, work }) {
  const problem = h('p', { class: 'note bad', role: 'alert', hidden: true, id: `${id}-problem` });
  const go = guarded('operate', h('button', { type: 'submit', class: 'primary', id: `${id}-go` }, action));
  const form = h('form', { class: 'form', id }, parts, problem, h('div', { class: 'row' }, go));
  const wrong = faults(form, problem, (refusal) => {
    const name = faultyField(refusal);
    // A fact is named by its own name; one that cannot be read was not sent.
    if (name) return controls[name] ?? controls.facts;
    return refusal.status === undefined ? controls.facts : null;
  });
  form.addEventListener('submit', async (event) => {
    event.preventDefault();
    go.disabled = true;
    wrong.clear();
    try {
      await work(form);
    } catch (error) {
      wrong.show(error);
    }
    go.disabled = false;
  });
  return form;
}

function blockForm(done) {
  const [buyer, reason] = [plain({ maxlength: 64 }), text({ maxlength: 200 })];
  const ends = h('input', { type: 'datetime-local', step: 1 });
  return sent({
    id: 'block-form', action: t('block'), controls: BLOCK_CONTROLS,
    parts: h('div', { class: 'grid' }, field('block-buyer', t('buyer'), buyer, t('buyer-hint')), field('block-reason', t('block-reason'), reason, t('block-reason-hint')),
      field('block-ends', t('block-ends'), ends, t('block-ends-hint', { zone: timeZone() }))),
    work: async (form) => {
      const until = ends.value ? { ends_at: rfc3339(ends) } : {};
      const { changed } = await post('/blocks', { buyer: buyer.value, reason: reason.value, ...until });
      toast(t(changed ? 'blocked' : 'blocked-before', { buyer: buyer.value }));
      form.reset();
      done();
    },
  });
}

/** The blocks, page by page in the order of the buyers' ids. */
function blockList() {
  const body = h('tbody', { id: 'blocks' });
  const problem = h('p', { class: 'note bad', role: 'alert', hidden: true });
  const more = h('button', { type: 'button', hidden: true, on: { click: () => load(rows.at(-1)?.buyer) } }, t('more'));
  let rows = [];
  const lift = (buyer) => confirm({
    title: t('unblock-title', { buyer }), body: t('unblock-words'), action: t('unblock'),
    work: async () => {
      await post('/blocks/remove', { buyer });
      toast(t('unblocked', { buyer }));
      load();
    },
  });
  function row(block) {
    const cell = (key, ...content) => h('td', { 'data-label': t(key) }, content);
    const button = guarded('operate', h('button', { type: 'button', 'aria-label': t('unblock-one', { buyer: block.buyer }), on: { click: () => lift(block.buyer) } }, t('unblock')));
    return h('tr', { data: { buyer: block.buyer } }, h('th', { scope: 'row' }, block.buyer), cell('block-reason', block.reason), cell('blocked-since', time(block.blocked_at_ms)),
      cell('block-ends', block.ends_at_ms === null ? t('never') : time(block.ends_at_ms)), h('td', {}, button));
  }
  async function load(after) {
    try {
      const query = new URLSearchParams({ limit: String(PAGE) });
      if (after) query.set('after', after);
      const { blocks } = await get(`/blocks?${query}`);
      rows = after ? [...rows, ...blocks] : blocks;
      more.hidden = blocks.length < PAGE;
      problem.hidden = true;
      show(body, rows.length ? rows.map(row) : h('tr', {}, h('td', { colspan: COLUMNS.length, class: 'quiet empty' }, t('no-blocks'))));
    } catch (error) {
      say(problem, error.message);
      problem.hidden = false;
    }
  }
  load();
  const head = COLUMNS.map((key) => h('th', { scope: 'col' }, t(key)));
  return {
    load: () => load(),
    element: h('div', { class: 'stackable' }, problem, h('table', { class: 'stack' }, h('caption', { class: 'visually-hidden' }, t('blocks')), h('thead', {}, h('tr', {}, head)), body), more),
  };
}

/** The pass that was issued: shown once, and kept nowhere. */
function issuedBox() {
  const words = h('p', {});
  const pass = h('textarea', { rows: 4, readonly: true, class: 'mono' });
  const copy = h('button', { type: 'button', id: 'copy-pass' }, t('copy'));
  copy.addEventListener('click', () => {
    pass.select();
    navigator.clipboard?.writeText(pass.value).then(() => toast(t('copied')), () => {});
  });
  const box = h('div', { class: 'stackable', id: 'issued', hidden: true, role: 'status' }, words, field('pass', t('pass'), pass, t('pass-once')), h('div', { class: 'row' }, copy));
  return {
    element: box,
    take(issued) {
      pass.value = issued.pass;
      say(words, t('pass-issued', { buyer: issued.sub, of: issued.drop ?? issued.sale, until: time(issued.exp * 1000) }));
      box.hidden = false;
    },
  };
}

function passForm() {
  const [buyer, id, facts] = [plain({ maxlength: 64 }), plain({ maxlength: 64 }), plain({ required: false, maxlength: 400 })];
  const of = h('select', { class: 'wide' }, ['drop', 'sale'].map((kind) => h('option', { value: kind }, t(`pass-for-${kind}`))));
  const hours = number({ required: true, min: 1, max: 8_784, value: 24 });
  const issued = issuedBox();
  const form = sent({
    id: 'pass-form', action: t('issue-pass'), controls: PASS_CONTROLS,
    parts: h('div', { class: 'grid' }, field('pass-buyer', t('buyer'), buyer, t('buyer-hint')), field('pass-of', t('pass-for'), of), field('pass-id', t('pass-id'), id, t('pass-id-hint')),
      field('pass-hours', t('pass-hours'), hours, t('pass-hours-hint')), field('pass-facts', t('facts'), facts, t('facts-hint'))),
    work: async () => {
      issued.element.hidden = true;
      const said = Object.entries(typedFacts(facts.value)).map(([fact, values]) => [fact, values.length === 1 ? values[0] : values]);
      issued.take(await post('/passes', { ...Object.fromEntries(said), sub: buyer.value, [of.value]: id.value, valid_s: Number(hours.value) * HOUR_S }));
    },
  });
  return h('div', { class: 'form' }, form, issued.element);
}

export function buyersView() {
  const blocks = blockList();
  return {
    title: t('buyers'),
    element: h('div', { class: 'view' }, h('h1', {}, t('buyers')),
      h('section', { class: 'card pad form' }, h('h2', {}, t('blocks')), h('p', { class: 'quiet' }, t('blocks-words')), blockForm(blocks.load), blocks.element),
      h('section', { class: 'card pad form' }, h('h2', {}, t('passes')), h('p', { class: 'quiet' }, t('passes-words')), passForm())),
  };
}
