// A new drop from its file, chosen or pasted as JSON. What the server refuses is shown at its place in the text.

import { post } from './api.js';
import { toast } from './dialog.js';
import { field, h } from './dom.js';
import { faults, faultyField } from './faults.js';
import { t } from './words.js';

/**
 * Where a text of JSON names a field: `[from, to]`; of a sale, in the object that has its id. Null when it does not. A sale's own id is
 * found where its field is not.
 */
export function placeOf(text, name, sale) {
  const names = [name, `${name}_id`];
  const wanted = sale ? 3 : 1;
  let [depth, key, place, isIt] = [0, null, null, !sale];
  for (const token of text.matchAll(/"(?:[^"\\]|\\.)*"(\s*:)?|[{}[\]]/g)) {
    const [word, colon] = token;
    if ('{['.includes(word)) {
      depth += 1;
      if (sale && depth === wanted) place = null;
    } else if ('}]'.includes(word)) {
      if (depth === wanted && isIt && place) return place;
      depth -= 1;
    } else if (depth === wanted && colon) {
      key = word.slice(1, word.lastIndexOf('"'));
      if (names.includes(key)) place = [token.index, token.index + word.length];
    } else if (depth === wanted && sale && ['sale_id', 'id'].includes(key) && word === JSON.stringify(sale)) {
      isIt = true;
      place ??= [token.index, token.index + word.length];
    }
  }
  return isIt ? place : null;
}

/** The text as an object. */
function parsed(text) {
  let drop;
  try {
    drop = JSON.parse(text);
  } catch (error) {
    throw new Error(t('not-json', { why: error.message }));
  }
  if (drop === null || typeof drop !== 'object' || Array.isArray(drop)) throw new Error(t('not-json', { why: t('not-an-object') }));
  return drop;
}

/** The form; `created(id)` is called when the drop is there. */
export function dropFile(created) {
  const chosen = h('input', { type: 'file', accept: '.json,application/json' });
  const text = h('textarea', { rows: 14, required: true, spellcheck: 'false', class: 'mono' });
  const problem = h('p', { class: 'note bad', role: 'alert', id: 'create-problem', hidden: true });
  const go = h('button', { type: 'submit', class: 'primary', id: 'create' }, t('create'));
  const form = h('form', { class: 'form', id: 'create-form' }, h('p', { class: 'quiet' }, t('drop-file-words')),
    field('drop-file', t('drop-file'), chosen), field('drop-text', t('drop-text'), text), problem, h('div', { class: 'row' }, go));
  const wrong = faults(form, problem, () => 'drop-text');
  function refused(error) {
    const name = faultyField(error);
    const place = name ? placeOf(text.value, name, error.sale) : null;
    const line = place && text.value.slice(0, place[0]).split('\n').length;
    if (line) error.message = `${t('line-n', { n: line })}: ${error.message}`;
    wrong.show(error);
    if (!place) return;
    // The browser scrolls to what is selected when the field gets the focus.
    text.setSelectionRange(...place);
    text.blur();
    text.focus();
  }
  chosen.addEventListener('change', async () => { text.value = (await chosen.files[0]?.text()) ?? text.value; });
  form.addEventListener('submit', async (event) => {
    event.preventDefault();
    go.disabled = true;
    wrong.clear();
    try {
      const { drop_id: id } = await post('/drops', parsed(text.value));
      toast(t('drop-created', { drop: id }));
      created(id);
    } catch (error) {
      refused(error);
    }
    go.disabled = false;
  });
  return form;
}
