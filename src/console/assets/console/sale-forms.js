// The forms of a sale: a new one, other terms, other times, a clone.

import { post, serverNow } from './api.js';
import { confirm, toast } from './dialog.js';
import { check, field, h } from './dom.js';
import { faults, faultyField } from './faults.js';
import { idInput, local, moment, number, numberOrNull, rfc3339, text, zoneHint } from './inputs.js';
import { lineInputs } from './line-form.js';
import { digits, t } from './words.js';

const DAY_MS = 86_400_000;

const path = (id, act) => `/sales/${encodeURIComponent(id)}/${act}`;

/** Which control of a sale's form has a field of the API: the end of its id. */
const CONTROLS = {
  id: 'id', sale_id: 'id', product: 'product', product_id: 'product', title: 'title', stock: 'stock', limit: 'limit', price_cents: 'price', currency: 'currency',
  starts_at: 'starts', ends_at: 'ends', pay_within_s: 'pay-within', pay_grace_s: 'pay-grace', limit_returns: 'returns', token_required: 'token', waiting_room: 'room',
  hidden: 'hidden', warm: 'warm', line: 'line', line_closes_at: 'line-closes', line_beacon: 'line-beacon', needs: 'needs', releases: 'releases', rollover_to: 'rollover',
};

/** The id of the control that a refusal is about, in the form of a sale whose ids begin with `prefix`. */
export function faultyControl(prefix, problem) {
  const name = CONTROLS[faultyField(problem)];
  return name ? `${prefix}-${name}` : null;
}

/**
 * The terms of a sale as inputs whose ids begin with `prefix`, filled from `sale` if there is one. `fields`, `payment` and `checks` are
 * the elements, `value()` the terms as the API takes them.
 */
export function termInputs(prefix, sale) {
  const currency = sale?.currency ?? 'CNY';
  const scale = () => 10 ** digits(inputs.currency.value);
  const inputs = {
    title: text({ maxlength: 200, value: sale?.title }),
    product: text({ maxlength: 64, value: sale?.product_id }),
    limit: number({ min: 1, value: sale ? sale.policy ?? '' : 1 }),
    price: h('input', { type: 'number', min: 0, step: 10 ** -digits(currency), value: ((sale?.price_cents ?? 0) / 10 ** digits(currency)).toFixed(digits(currency)), inputmode: 'decimal' }),
    currency: text({ maxlength: 3, value: currency, pattern: '[A-Z]{3}' }),
    payWithin: number({ min: 1, max: 2_592_000, value: sale?.payment?.pay_within_s ?? '' }),
    payGrace: number({ min: 0, max: 86_400, value: sale?.payment?.pay_grace_s ?? 30 }),
    challenge: h('input', { type: 'text', pattern: 'pow:([1-9]|1[0-9]|2[0-4])|hook', autocomplete: 'off', spellcheck: 'false', value: sale?.challenge ?? '' }),
  };
  const token = check(`${prefix}-token`, t('token-required'), sale?.token_required ?? false);
  const room = check(`${prefix}-room`, t('waiting-room'), sale?.waiting_room ?? false);
  const returns = check(`${prefix}-returns`, t('limit-returns'), sale?.payment?.limit_returns ?? false);
  // Without a payment step there is nothing to be lenient about.
  const withTerms = () => { for (const one of [inputs.payGrace, returns.box]) one.disabled = inputs.payWithin.value === ''; };
  inputs.payWithin.addEventListener('input', withTerms);
  withTerms();
  inputs.currency.addEventListener('input', () => { inputs.price.step = String(1 / scale()); });
  const paymentTerms = () => {
    if (inputs.payWithin.value === '') return { pay_within_s: null };
    const grace = inputs.payGrace.value === '' ? {} : { pay_grace_s: Number(inputs.payGrace.value) };
    return { pay_within_s: Number(inputs.payWithin.value), ...grace, limit_returns: returns.box.checked };
  };
  const put = (name, label, input, hint) => field(`${prefix}-${name}`, label, input, hint);
  return {
    /** The title's own input, for who fills it. */
    title: inputs.title,
    fields: [
      put('title', t('sale-title'), inputs.title, t('sale-title-hint')), put('product', t('product'), inputs.product),
      put('limit', t('limit-each'), inputs.limit, t('limit-hint')), put('price', t('price'), inputs.price), put('currency', t('currency'), inputs.currency),
    ],
    payment: [
      put('pay-within', t('pay-within'), inputs.payWithin, t('pay-within-hint')), put('pay-grace', t('pay-grace'), inputs.payGrace, t('pay-grace-hint')),
      put('challenge', t('challenge'), inputs.challenge, t('challenge-hint')),
    ],
    checks: [token.element, room.element, returns.element],
    value: () => ({
      title: inputs.title.value, product: inputs.product.value, limit: numberOrNull(inputs.limit),
      price_cents: Math.round(Number(inputs.price.value) * scale()), currency: inputs.currency.value,
      ...paymentTerms(), token_required: token.box.checked, waiting_room: room.box.checked, challenge: inputs.challenge.value || null,
    }),
  };
}

/** The form for a new sale; `created(id)` is called when it is there. */
export function createForm(created) {
  const now = serverNow();
  const [id, stock, starts, ends] = [idInput(), number({ required: true, min: 0, max: 1_000_000_000, value: 100 }), moment(now), moment(now + DAY_MS)];
  const [terms, line] = [termInputs('new'), lineInputs('new')];
  const hidden = check('new-hidden', t('hidden-at-first'), false);
  const warm = check('new-warm', t('warm-at-once'), false);
  const byPerson = check('new-by-person', t('by-person'), false);
  const problem = h('p', { class: 'note bad', role: 'alert', id: 'create-problem', hidden: true });
  const go = h('button', { type: 'submit', class: 'primary', id: 'create' }, t('create'));
  const form = h('form', { class: 'card pad form', id: 'create-form' },
    h('h2', {}, t('new-sale')),
    h('div', { class: 'grid' },
      field('new-id', t('sale-id'), id, t('sale-id-hint')), field('new-stock', t('stock'), stock), field('new-starts', t('starts'), starts, zoneHint()), field('new-ends', t('ends'), ends, zoneHint()),
      terms.fields, terms.payment, line.fields),
    h('div', { class: 'row' }, line.check, byPerson.element, terms.checks, hidden.element, warm.element), problem, h('div', { class: 'row' }, go));
  const wrong = faults(form, problem, (refusal) => faultyControl('new', refusal));
  form.addEventListener('submit', async (event) => {
    event.preventDefault();
    go.disabled = true;
    wrong.clear();
    const body = { id: id.value, stock: Number(stock.value), starts_at: rfc3339(starts), ends_at: rfc3339(ends), ...terms.value(), ...line.value(), limit_by: byPerson.box.checked ? 'person' : 'account', hidden: hidden.box.checked, warm: warm.box.checked };
    try {
      await post('/sales', body);
      toast(t('created', { sale: body.id }));
      created(body.id);
    } catch (error) {
      wrong.show(error);
    }
    go.disabled = false;
  });
  return form;
}

/** Other terms, until the start is settled. Sends what was changed, and the version that is shown. */
export function editSale(sale, done) {
  const terms = termInputs('edit', sale);
  const before = terms.value();
  return confirm({
    title: t('edit-title', { sale: sale.sale_id }),
    body: h('div', { class: 'stackable' }, h('p', {}, t('edit-words')), h('div', { class: 'grid' }, terms.fields, terms.payment), h('div', { class: 'row' }, terms.checks)),
    action: t('save'),
    work: async () => {
      const changed = Object.entries(terms.value()).filter(([name, value]) => value !== before[name]);
      done(await post(path(sale.sale_id, 'edit'), { ...Object.fromEntries(changed), version: sale.version }), t('edited'));
    },
  });
}

/** Other times: the start before it, the end until it has passed. */
export function rescheduleSale(sale, done) {
  const [starts, ends] = [moment(sale.starts_at_ms), moment(sale.ends_at_ms)];
  // What was not touched stays to the millisecond.
  const touched = (input, unixMs) => (input.value === local(new Date(unixMs)) ? undefined : rfc3339(input));
  return confirm({
    title: t('reschedule-title', { sale: sale.sale_id }),
    body: h('div', { class: 'stackable' }, h('p', {}, t('reschedule-words')), h('div', { class: 'grid' }, field('move-starts', t('starts'), starts, zoneHint()), field('move-ends', t('ends'), ends, zoneHint()))),
    action: t('save'),
    work: async () => {
      const times = { starts_at: touched(starts, sale.starts_at_ms), ends_at: touched(ends, sale.ends_at_ms) };
      done(await post(path(sale.sale_id, 'reschedule'), { ...times, version: sale.version }), t('rescheduled'));
    },
  });
}

/** A draft with the same terms. */
export function cloneSale(sale) {
  const start = serverNow() + DAY_MS;
  const [id, stock, starts, ends] = [idInput(), number({ required: true, min: 0, max: 1_000_000_000, value: sale.granted }), moment(start), moment(start + sale.ends_at_ms - sale.starts_at_ms)];
  const hidden = check('clone-hidden', t('hidden-at-first'), sale.hidden);
  return confirm({
    title: t('clone-title', { sale: sale.sale_id }),
    body: h('div', { class: 'stackable' }, h('p', {}, t('clone-words')),
      h('div', { class: 'grid' }, field('clone-id', t('sale-id'), id, t('sale-id-hint')), field('clone-stock', t('stock'), stock), field('clone-starts', t('starts'), starts, zoneHint()), field('clone-ends', t('ends'), ends, zoneHint())),
      h('div', { class: 'row' }, hidden.element)),
    action: t('clone'),
    work: async () => {
      await post(path(sale.sale_id, 'clone'), { id: id.value, stock: Number(stock.value), starts_at: rfc3339(starts), ends_at: rfc3339(ends), hidden: hidden.box.checked });
      toast(t('created', { sale: id.value }));
      location.hash = `#/sale/${encodeURIComponent(id.value)}`;
    },
  });
}
