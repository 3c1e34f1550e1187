// The form of a new drop: what it is called, its limit, and its sales, of which each begins with the terms of the one above.

import { post, serverNow } from './api.js';
import { toast } from './dialog.js';
import { check, field, h } from './dom.js';
import { faults, faultyField, opensWhatIsWrong } from './faults.js';
import { idInput, number, numberOrNull, text } from './inputs.js';
import { lotForm } from './lot-form.js';
import { faultyControl } from './sale-forms.js';
import { t } from './words.js';

const SALES_MAX = 64;
const CONTROLS = { drop_id: 'drop-id', title: 'drop-title', limit: 'drop-limit', sales: 'drop-sizes' };

/** A part of an id: what of a title may be in one. */
const slug = (title) => title.toLowerCase().replace(/[^a-z0-9]+/g, '-').replace(/^-+|-+$/g, '');

/** The sales of the form. `dropId` is the input of the drop's id, which the ids of sales begin with. */
function lotList(dropId) {
  const list = h('div', { class: 'stackable', id: 'lots' });
  const sizes = text({ required: false, autocomplete: 'off', spellcheck: 'false' });
  const add = h('button', { type: 'button', id: 'add-sizes' }, t('add-sizes'));
  let lots = [];
  let n = 0;
  function refresh() {
    for (const lot of lots) {
      lot.offer(lots.filter((other) => other !== lot).map((other) => [other.prefix, other.name()]));
      lot.remove.hidden = lots.length === 1;
    }
    add.disabled = lots.length >= SALES_MAX;
  }
  function another() {
    n += 1;
    const lot = lotForm({ n, before: lots.at(-1)?.terms(), now: serverNow(), remove: () => {
      lots = lots.filter((one) => one !== lot);
      lot.element.remove();
      refresh();
      add.focus();
    } });
    lots.push(lot);
    list.append(lot.element);
    refresh();
    return lot;
  }
  /** An id that no sale of the form has yet. */
  function freeId(title) {
    const wanted = [dropId.value, slug(title) || String(lots.length)].filter(Boolean).join('-').slice(0, 60);
    let id = wanted;
    for (let again = 2; lots.some((lot) => lot.id.value === id); again += 1) id = `${wanted}-${again}`;
    return id;
  }
  function addSizes() {
    const titles = sizes.value.split(/[,，]/).map((title) => title.trim()).filter(Boolean);
    for (const title of titles.length ? titles : ['']) {
      if (lots.length >= SALES_MAX) break;
      const lot = title && lots[0].isEmpty() ? lots[0] : another();
      lot.title.value = title;
      if (title) lot.id.value = freeId(title);
      if (!titles.length) lot.title.focus();
    }
    sizes.value = '';
    refresh();
  }
  add.addEventListener('click', addSizes);
  sizes.addEventListener('keydown', (event) => {
    // A person who types Chinese ends a word with it.
    if (event.key !== 'Enter' || event.isComposing) return;
    event.preventDefault();
    addSizes();
  });
  list.addEventListener('input', refresh);
  another();
  const idOf = (prefix) => lots.find((lot) => lot.prefix === prefix)?.id.value ?? null;
  return {
    element: h('section', { class: 'stackable' }, h('h3', {}, t('sales')), h('div', { class: 'sizes' }, field('drop-sizes', t('sizes'), sizes, t('sizes-hint')), add), list),
    value: () => lots.map((lot) => lot.value(idOf)),
    /** The sale whose needs cannot be read. */
    unreadable: () => lots.find((lot) => { try { lot.value(idOf); return false; } catch { return true; } }),
    lotOf: (sale) => lots.find((lot) => lot.id.value === sale),
  };
}

/** The form; `created(id)` is called when the drop is there. */
export function dropForm(created) {
  const [id, title, limit] = [idInput(), text({ maxlength: 200 }), number({ min: 1, value: 1 })];
  const hidden = check('drop-hidden', t('hidden-at-first'), false);
  const byPerson = check('drop-by-person', t('by-person'), false);
  const lots = lotList(id);
  const problem = h('p', { class: 'note bad', role: 'alert', id: 'form-problem', hidden: true });
  const go = h('button', { type: 'submit', class: 'primary', id: 'create-by-form' }, t('create'));
  const form = h('form', { class: 'form', id: 'drop-form' },
    h('div', { class: 'grid' }, field('drop-id', t('drop-id'), id, t('sale-id-hint')), field('drop-title', t('drop-title'), title, t('sale-title-hint')), field('drop-limit', t('drop-limit'), limit, t('drop-limit-hint'))),
    h('div', { class: 'row' }, byPerson.element, hidden.element), lots.element, problem, h('div', { class: 'row' }, go));
  const wrong = faults(form, problem, (refusal) => {
    if (refusal.lot) return `${refusal.lot.prefix}-needs`;
    const lot = refusal.sale && lots.lotOf(refusal.sale);
    return lot ? faultyControl(lot.prefix, refusal) : CONTROLS[faultyField(refusal)];
  });
  opensWhatIsWrong(form);
  form.addEventListener('submit', async (event) => {
    event.preventDefault();
    go.disabled = true;
    wrong.clear();
    try {
      const sales = lots.value().map((sale) => ({ ...sale, hidden: hidden.box.checked }));
      await post('/drops', { drop_id: id.value, title: title.value, limit: numberOrNull(limit), limit_by: byPerson.box.checked ? 'person' : 'account', sales });
      toast(t('drop-created', { drop: id.value }));
      created(id.value);
    } catch (error) {
      error.lot = lots.unreadable();
      wrong.show(error);
    }
    go.disabled = false;
  });
  return form;
}
