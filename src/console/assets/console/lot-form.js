// One sale in the form of a new drop: a size, a colour, a round. What most sales of a drop do not have is folded away.

import { typedFacts } from './facts.js';
import { check, field, h, show } from './dom.js';
import { idInput, moment, number, rfc3339, text, zoneHint } from './inputs.js';
import { lineInputs } from './line-form.js';
import { termInputs } from './sale-forms.js';
import { t } from './words.js';

const DAY_MS = 86_400_000;
const HOUR_MS = 3_600_000;
const RELEASES_MAX = 32;
/** Unix milliseconds of an input, or `otherwise` while it is empty. */
const unixMs = (input, otherwise) => (input.value ? Date.parse(rfc3339(input)) : otherwise);

/** Releases: rows of a time and units, and the button for another one. `from()` is when the sale starts, Unix milliseconds. */
function releaseRows(prefix, from) {
  const list = h('div', { class: 'stackable' });
  const more = h('button', { type: 'button', id: `${prefix}-releases` }, t('add-release'));
  let rows = [];
  let number_ = 0;
  function add({ at, units }) {
    number_ += 1;
    const ids = `${prefix}-release${number_}`;
    const row = { at: moment(at), units: number({ required: true, min: 1, max: 1_000_000_000, value: units }) };
    const away = h('button', { type: 'button', class: 'plain', 'aria-label': t('remove-release', { n: number_ }) }, t('remove'));
    row.element = h('div', { class: 'release' }, field(`${ids}-at`, t('release-at'), row.at, zoneHint()), field(`${ids}-units`, t('units'), row.units), away);
    away.addEventListener('click', () => {
      rows = rows.filter((one) => one !== row);
      row.element.remove();
      more.disabled = false;
      more.focus();
    });
    rows.push(row);
    list.append(row.element);
    more.disabled = rows.length >= RELEASES_MAX;
    return row;
  }
  more.addEventListener('click', () => add({ at: (rows.length ? unixMs(rows.at(-1).at, from()) : from()) + HOUR_MS, units: 10 }).at.focus());
  return {
    element: h('div', { class: 'field' }, h('span', { class: 'label' }, t('releases')), h('span', { class: 'hint' }, t('releases-hint')), list, h('div', {}, more)),
    add,
    value: () => rows.map(({ at, units }) => ({ at: rfc3339(at), units: Number(units.value) })),
  };
}

/**
 * The editor of a sale, number `n` of those that this form ever had. It begins with the terms of `before`, the values of the sale above,
 * but for id, title and releases. `now` is the server's time; `remove()` is called by its button.
 */
export function lotForm({ n, before, now, remove }) {
  const prefix = `lot${n}`;
  const [id, stock] = [idInput(), number({ required: true, min: 0, max: 1_000_000_000, value: before?.stock ?? 100 })];
  const starts = moment(before?.starts ?? now);
  const ends = moment(before?.ends ?? now + DAY_MS);
  const terms = termInputs(prefix, before
    ? { ...before, title: '', product_id: before.product, policy: before.limit, payment: before.pay_within_s ? before : null }
    : { currency: 'CNY', policy: null });
  const facts = text({ required: false, maxlength: 400, value: before?.facts ?? '', autocomplete: 'off', spellcheck: 'false' });
  const pass = check(`${prefix}-pass`, t('needs-pass'), before?.needs?.pass === true);
  const rollover = h('select', { class: 'wide' });
  const line = lineInputs(prefix);
  const releases = releaseRows(prefix, () => unixMs(starts, now));
  const away = h('button', { type: 'button', class: 'plain', id: `${prefix}-remove`, 'aria-label': t('remove-sale', { n }), on: { click: remove } }, t('remove'));
  const legend = h('h3', {}, t('sale-n', { n }));
  function needs() {
    const wanted = typedFacts(facts.value);
    if (pass.box.checked) wanted.pass = true;
    return Object.keys(wanted).length ? wanted : null;
  }
  const [title, product, limit, ...money] = terms.fields;
  const element = h('div', { class: 'lot-form', role: 'group', 'aria-label': t('sale-n', { n }), id: prefix },
    h('div', { class: 'spread' }, legend, away),
    h('div', { class: 'grid' }, title, field(`${prefix}-stock`, t('stock'), stock), money,
      field(`${prefix}-starts`, t('starts'), starts, zoneHint()), field(`${prefix}-ends`, t('ends'), ends, zoneHint()), field(`${prefix}-id`, t('sale-id'), id, t('sale-id-hint')), product),
    h('details', {}, h('summary', {}, t('lot-members')),
      h('div', { class: 'form' },
        h('div', { class: 'grid' }, field(`${prefix}-needs`, t('needs'), facts, t('needs-hint')), field(`${prefix}-rollover`, t('rollover'), rollover, t('rollover-hint')), line.fields),
        h('div', { class: 'row' }, pass.element, line.check), releases.element)),
    h('details', {}, h('summary', {}, t('lot-terms')), h('div', { class: 'form' }, h('div', { class: 'grid' }, limit, terms.payment), h('div', { class: 'row' }, terms.checks))));
  return {
    prefix, element, id, title: terms.title, remove: away,
    /** Whether nothing of it was said yet. */
    isEmpty: () => id.value === '' && terms.title.value === '',
    name: () => id.value || t('sale-n', { n }),
    /** The sales of the drop that may get what is unsold: `[prefix, name]`. */
    offer(others) {
      const chosen = rollover.value;
      show(rollover, h('option', { value: '' }, t('rollover-none')), others.map(([key, name]) => h('option', { value: key, selected: key === chosen }, name)));
    },
    /** The sale as the API takes it; `idOf(prefix)` is the id of another sale. Throws a sentence about needs that cannot be read. */
    value(idOf) {
      return {
        sale_id: id.value, ...terms.value(), ...line.value(), stock: Number(stock.value), starts_at: rfc3339(starts), ends_at: rfc3339(ends), needs: needs(), releases: releases.value(),
        rollover_to: rollover.value ? idOf(rollover.value) : null,
      };
    },
    /** What the next sale begins with. */
    terms: () => ({ ...terms.value(), stock: Number(stock.value), starts: unixMs(starts, now), ends: unixMs(ends, now + DAY_MS), facts: facts.value, needs: { pass: pass.box.checked } }),
  };
}
