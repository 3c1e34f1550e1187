// The sizes of a drop as a choice: radio buttons, each with what it needs, what it costs and what is left. The arrow keys choose.

import { h, say, show } from './dom.js';
import { needed } from './needs.js';
import { countdown } from './orders.js';
import { count, price, shortTime, t } from './words.js';

/** What a state says beside a size; READY and what is to come say more. */
const WORDS = { SOLD_OUT: 'buy-sold-out', PAUSED: 'buy-paused', ENDED: 'buy-over', LOADING: 'buy-loading' };

/** When a sold-out sale gets its next units, Unix milliseconds; null when it waits for none. */
export const nextRelease = (sale) => (sale?.state === 'SOLD_OUT' && sale.next_release_at ? Date.parse(sale.next_release_at) : null);

/** How it stands with a size at this moment. */
function standing(sale, now) {
  const [starts, release] = [Date.parse(sale.starts_at), nextRelease(sale)];
  if (sale.state === 'NOT_STARTED') return now < starts ? t('lot-starts', { clock: countdown(starts - now) }) : t('buy-loading');
  if (release !== null) return t('lot-more', { at: shortTime(release, now) });
  if (sale.by_line) return t((sale.line?.kind ?? sale.line) === 'waitlist' ? 'lot-waitlist' : 'lot-raffle');
  if (sale.state !== 'READY') return t(WORDS[sale.state] ?? 'buy-loading');
  return sale.remaining === null ? t('left-unknown') : t('left', { n: count(sale.remaining) });
}

/** Who may buy this size, and until when; empty for a size without needs. */
function members(sale, now) {
  return sale.needs === null ? '' : t('lot-members', { what: needed(sale.needs), until: shortTime(Date.parse(sale.ends_at), now) });
}

/** The choice. `choose(saleId)` is called when a person chooses; `update(state)` draws, `tick(nowMs)` moves the clocks. */
export function lotChooser(choose) {
  const legend = h('legend', { class: 'small' });
  const list = h('div', { class: 'lots' });
  const element = h('fieldset', { id: 'lots', hidden: true }, legend, list);
  let drawn = '';
  let lots = [];
  function lot(sale, hasPrice) {
    const box = h('input', { type: 'radio', name: 'lot', value: sale.sale_id, on: { change: () => choose(sale.sale_id) } });
    const [word, who] = [h('small', {}), h('small', { class: 'lot-who' })];
    const money = hasPrice ? h('small', { class: 'num' }, price(sale.price_cents, sale.currency)) : null;
    return { id: sale.sale_id, box, word, who, element: h('label', { class: 'lot', data: { sale: sale.sale_id } }, box, h('span', { class: 'lot-title' }, sale.title), money, who, word) };
  }
  function tick(now, sales) {
    for (const one of lots) {
      const sale = sales.find((other) => other.sale_id === one.id);
      if (!sale) continue;
      say(one.word, standing(sale, now));
      say(one.who, members(sale, now));
      one.who.hidden = sale.needs === null;
    }
  }
  return {
    element,
    update({ drop, sale }, now) {
      element.hidden = drop === null;
      if (drop === null) return;
      say(legend, t('lots', { drop: drop.title }));
      // Drawn anew only when there are other sizes: the keyboard keeps its place.
      const next = JSON.stringify(drop.sales.map(({ sale_id: id, title, price_cents: cents }) => [id, title, cents]));
      if (next !== drawn) {
        drawn = next;
        const differ = new Set(drop.sales.map((one) => `${one.price_cents} ${one.currency}`)).size > 1;
        lots = drop.sales.map((one) => lot(one, differ));
        show(list, lots.map((one) => one.element));
      }
      for (const one of lots) {
        one.box.checked = one.id === sale?.sale_id;
        const { state } = drop.sales.find((other) => other.sale_id === one.id);
        one.element.className = `lot${state === 'READY' ? '' : ' away'}${['SOLD_OUT', 'ENDED'].includes(state) ? ' gone' : ''}`;
      }
      tick(now, drop.sales);
    },
    tick(now, drop) {
      if (drop) tick(now, drop.sales);
    },
  };
}

/** The sale of a drop that is shown first: one that sells and needs nothing that `facts` lack, else one that sells, else the first. */
export function firstLot(sales, fits) {
  return sales.find((sale) => sale.state === 'READY' && fits(sale)) ?? sales.find((sale) => sale.state === 'READY') ?? sales[0] ?? null;
}

/** The limit over all sizes of the drop, and what of it the visitor has. */
export function dropLimits() {
  const [badge, have] = [h('span', { class: 'badge', id: 'drop-limit' }), h('p', { class: 'note warn', id: 'drop-have' })];
  return {
    badge,
    have,
    update({ drop, orders }) {
      const limit = drop?.limit ?? null;
      badge.hidden = limit === null;
      say(badge, limit === null ? '' : t('drop-limit', { n: count(limit) }));
      const stands = (order) => !['EXPIRED', 'CANCELLED'].includes(order.state) && drop.sales.some((one) => one.sale_id === order.sale_id);
      const mine = limit === null ? [] : orders.filter(stands);
      const units = mine.reduce((sum, order) => sum + order.quantity, 0);
      have.hidden = units === 0;
      const titles = [...new Set(mine.map((order) => order.title))].join(', ');
      say(have, units === 0 ? '' : t(units < limit ? 'drop-have' : 'drop-have-all', { n: count(limit), units: count(units), titles }));
    },
  };
}
