// Drops: the list, a new one from its file, and one of them with what is done to all its sales.

import { post } from './api.js';
import { confirm, confirmByName, toast } from './dialog.js';
import { field, h, say, show } from './dom.js';
import { opener, reading, table } from './list.js';
import { guarded } from './roles.js';
import { SALE_COLUMNS, saleRow } from './sales.js';
import { count, t } from './words.js';

const link = (kind, id) => h('a', { href: `#/${kind}/${encodeURIComponent(id)}` }, id);
const cell = (label, ...content) => h('td', { 'data-label': label }, content);
const limitWords = (limit) => (limit === null ? t('no-limit') : t('drop-limit-each', { n: count(limit) }));

/** The form for a new drop: its file, chosen or typed. */
function createForm(created) {
  const chosen = h('input', { type: 'file', accept: '.json,application/json' });
  const text = h('textarea', { rows: 12, required: true, spellcheck: 'false', class: 'mono' });
  const problem = h('p', { class: 'note bad', role: 'alert', id: 'create-problem', hidden: true });
  const go = h('button', { type: 'submit', class: 'primary', id: 'create' }, t('create'));
  const form = h('form', { class: 'card pad form', id: 'create-form' }, h('h2', {}, t('new-drop')), h('p', { class: 'quiet' }, t('drop-file-words')),
    field('drop-file', t('drop-file'), chosen), field('drop-text', t('drop-text'), text), problem, h('div', { class: 'row' }, go));
  chosen.addEventListener('change', async () => { text.value = (await chosen.files[0]?.text()) ?? text.value; });
  form.addEventListener('submit', async (event) => {
    event.preventDefault();
    go.disabled = true;
    problem.hidden = true;
    try {
      const { drop_id: id } = await post('/drops', JSON.parse(text.value));
      toast(t('drop-created', { drop: id }));
      created(id);
    } catch (error) {
      say(problem, error.message);
      problem.hidden = false;
    }
    go.disabled = false;
  });
  return form;
}

export function dropsView() {
  const body = h('tbody', { id: 'drops' });
  const row = (drop) => h('tr', {}, h('th', { scope: 'row' }, link('drop', drop.drop_id), h('div', { class: 'quiet small' }, drop.title)),
    cell(t('limit'), limitWords(drop.limit)), cell(t('sales'), h('span', {}, drop.sale_ids.flatMap((id) => [link('sale', id), ' ']))));
  const read = reading('/drops', ({ drops }) => {
    // A person in the middle of the table keeps the place.
    if (body.contains(document.activeElement)) return;
    show(body, drops.length ? drops.map(row) : h('tr', {}, h('td', { colspan: 3, class: 'quiet' }, t('no-drops'))));
  });
  const form = createForm((id) => { location.hash = `#/drop/${encodeURIComponent(id)}`; });
  const toggle = opener('new-drop', form);
  return {
    title: t('drops'),
    element: h('div', { class: 'view' }, h('div', { class: 'spread' }, h('h1', {}, t('drops')), toggle), h('p', { class: 'quiet' }, t('drops-words')), form, read.problem, table(t('drops'), ['drop', 'limit', 'sales'], body)),
    close: read.close,
  };
}

const closeForGood = (id, done) => confirmByName({
  id, title: t('drop-close-title', { drop: id }), words: t('drop-close-words'), action: t('close'),
  work: async () => done(await post(`/drops/${encodeURIComponent(id)}/close`), t('drop-done')),
});

/** What can be done to all sales of the drop now: what none of them can take is not offered. */
function buttons(drop, done) {
  const id = drop.drop_id;
  const any = (test) => drop.progress.some((sale, at) => test(sale, drop.sales[at]));
  const each = (name) => () => confirm({
    title: t(`drop-${name}-title`, { drop: id }), body: t('drop-each-words'), action: t(name), danger: name === 'pause',
    work: async () => {
      const answer = await post(`/drops/${encodeURIComponent(id)}/${name}`);
      const failed = answer.sales.filter((sale) => sale.problem !== null);
      done(answer.drop, failed.length ? '' : t('drop-done'));
      if (failed.length) throw new Error(failed.map((sale) => `${sale.sale_id}: ${sale.problem}`).join('\n'));
    },
  });
  const offered = [
    ['warm', 'primary', any((sale) => sale.status === 'draft')], ['resume', 'primary', any((sale) => sale.status === 'paused')], ['pause', '', any((sale) => sale.status === 'warmed')],
    ['publish', 'primary', any((_, terms) => terms.hidden)], ['hide', '', any((sale, terms) => !terms.hidden && sale.status !== 'closed')],
  ].filter(([, , possible]) => possible).map(([name, kind]) => h('button', { type: 'button', id: `do-${name}`, class: kind, on: { click: each(name) } }, t(name)));
  if (any((sale) => sale.status !== 'closed')) offered.push(h('button', { type: 'button', id: 'do-close', class: 'danger', on: { click: () => closeForGood(id, done) } }, t('close')));
  return offered.map((button) => guarded('operate', button));
}

export function dropView(id) {
  const head = h('div', { class: 'row', id: 'drop-head' });
  const actions = h('div', { class: 'row', id: 'actions' });
  const body = h('tbody', { id: 'drop-sales' });
  let flows = {};
  let drop = null;
  /** A sale of the drop as the list of sales has it. */
  const sale = (terms, progress) => ({
    ...terms, ...progress, policy: terms.limit, stock: progress.unsold, starts_at_ms: Date.parse(terms.starts_at), ends_at_ms: Date.parse(terms.ends_at),
  });
  function draw() {
    if (!drop || body.contains(document.activeElement)) return;
    show(body, drop.sales.map((terms, at) => saleRow(sale(terms, drop.progress[at]), flows[terms.sale_id])));
  }
  function take(next, said) {
    const before = drop && JSON.stringify([drop.title, drop.progress]);
    drop = next;
    if (before !== JSON.stringify([drop.title, drop.progress])) {
      show(head, h('h1', {}, drop.title), h('span', { class: 'badge' }, limitWords(drop.limit)), h('code', {}, drop.drop_id));
      show(actions, buttons(drop, take));
    }
    draw();
    if (said) toast(said);
  }
  const read = reading(`/drops/${encodeURIComponent(id)}`, (answer) => take(answer));
  return {
    title: id,
    element: h('div', { class: 'view' }, h('p', {}, h('a', { href: '#/drops' }, `← ${t('drops')}`)), head, read.problem, actions, table(t('sales'), SALE_COLUMNS, body)),
    close: read.close,
    update({ history }) {
      flows = history.at(-1)?.perSale ?? {};
      draw();
    },
  };
}
