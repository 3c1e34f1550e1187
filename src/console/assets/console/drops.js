// Drops: the list, and a new one by its form or from its file.

import { dropFile } from './drop-file.js';
import { dropForm } from './drop-form.js';
import { h, show } from './dom.js';
import { opener, reading, table } from './list.js';
import { count, t } from './words.js';

const link = (kind, id) => h('a', { href: `#/${kind}/${encodeURIComponent(id)}` }, id);
const cell = (label, ...content) => h('td', { 'data-label': label }, content);

/** The limit of a drop in words. */
export const limitWords = (limit) => (limit === null ? t('no-limit') : t('drop-limit-each', { n: count(limit) }));

/** Both ways to a new drop, one of them shown. */
function createCard(created) {
  const ways = { form: dropForm(created), file: dropFile(created) };
  const radio = (name) => h('input', { type: 'radio', name: 'way', id: `by-${name}`, value: name, checked: name === 'form' });
  const radios = { form: radio('form'), file: radio('file') };
  function choose() {
    for (const name of Object.keys(ways)) ways[name].hidden = !radios[name].checked;
  }
  const option = (name) => h('label', { class: 'check', for: `by-${name}` }, radios[name], h('span', {}, t(`by-${name}`)));
  const choice = h('fieldset', { class: 'row' }, h('legend', { class: 'visually-hidden' }, t('new-drop')), option('form'), option('file'));
  choice.addEventListener('change', choose);
  choose();
  return h('section', { class: 'card pad form' }, h('h2', {}, t('new-drop')), h('p', { class: 'quiet' }, t('new-drop-words')), choice, ways.form, ways.file);
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
  const card = createCard((id) => { location.hash = `#/drop/${encodeURIComponent(id)}`; });
  const toggle = opener('new-drop', card);
  return {
    title: t('drops'),
    element: h('div', { class: 'view' }, h('div', { class: 'spread' }, h('h1', {}, t('drops')), toggle), h('p', { class: 'quiet' }, t('drops-words')), card, read.problem, table(t('drops'), ['drop', 'limit', 'sales'], body)),
    close: read.close,
  };
}
