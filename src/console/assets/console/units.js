// Units that come, leave or move: dialogs, each with a name of its own, so that pressing again after a lost answer moves nothing twice.

import { post } from './api.js';
import { confirm } from './dialog.js';
import { field, h } from './dom.js';
import { count, t } from './words.js';

/** A name for one act. */
const actName = () => `console-${Date.now().toString(36)}-${Math.floor(Math.random() * 2 ** 32).toString(36)}`;

/** Asks for units, after the fields that come before; `work` gets their number and the act's name. */
function unitsDialog({ verb, title, units: wanted = 100, fields = [], danger, work }) {
  const units = h('input', { type: 'number', min: 1, max: 1_000_000_000, step: 1, value: wanted, required: true, inputmode: 'numeric' });
  const name = actName();
  return confirm({
    title,
    body: h('div', { class: 'stackable' }, h('p', {}, t(`${verb}-words`)), fields, field('units', t('units'), units),
      h('p', { class: 'quiet small' }, t('act-name'), ' ', h('code', {}, name))),
    action: t(verb),
    danger,
    work: () => work(Number(units.value), name),
  });
}

/** Adds units to a sale. */
export const topUp = (id, done) => unitsDialog({
  verb: 'top-up', title: t('top-up-title', { sale: id }),
  work: async (units, grant) => done(await post(`/sales/${encodeURIComponent(id)}/top-up`, { units, grant }), t('topped-up', { n: count(units) })),
});

const take = async (id, units, name) => (await post(`/sales/${encodeURIComponent(id)}/withdraw`, { units, name }));

/** Takes units of a sale off sale. */
export const withdraw = (id, done) => unitsDialog({
  verb: 'withdraw', title: t('withdraw-title', { sale: id }), danger: true,
  work: async (units, name) => {
    const answer = await take(id, units, name);
    done(answer, t('withdrawn', { n: count(answer.withdrawn.taken) }));
  },
});

/** A choice among the sales of a drop, each with its unsold units. */
function saleChoice(drop, at) {
  const option = (sale, n) => h('option', { value: sale.sale_id, selected: n === at }, `${sale.title}: ${t('n-unsold', { n: count(drop.progress[n].unsold) })} (${sale.sale_id})`);
  return h('select', { class: 'wide' }, drop.sales.map(option));
}

/** Takes units of one sale of a drop off sale. */
export function withdrawFrom(drop, done) {
  const from = saleChoice(drop, 0);
  return unitsDialog({
    verb: 'withdraw', title: t('withdraw-title', { sale: drop.drop_id }), units: 1, danger: true, fields: [field('units-from', t('sale'), from)],
    work: async (units, name) => done(t('withdrawn', { n: count((await take(from.value, units, name)).withdrawn.taken) })),
  });
}

/** Moves unsold units from one sale of a drop to another. */
export function moveUnits(drop, done) {
  const [from, to] = [saleChoice(drop, 0), saleChoice(drop, 1)];
  return unitsDialog({
    verb: 'move', title: t('move-title', { drop: drop.drop_id }), units: 1, fields: [h('div', { class: 'grid' }, field('units-from', t('move-from'), from), field('units-to', t('move-to'), to))],
    work: async (units, name) => {
      const answer = await post(`/drops/${encodeURIComponent(drop.drop_id)}/move`, { from: from.value, to: to.value, units, name });
      const { taken, asked, target_closed: closed } = answer.moved;
      const words = taken < asked ? t('moved-fewer', { n: count(taken), asked: count(asked) }) : t('moved', { n: count(taken) });
      done(closed ? `${words} ${t('moved-closed')}` : words, answer.drop);
    },
  });
}
