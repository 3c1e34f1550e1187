// How everybody can check a draw: what was public before it, what is public now, and the two files that it is recomputed from.

import { h, show } from './dom.js';
import { count, t } from './words.js';

/** A part that opens. `update(sale, line, entry)` draws it anew when something became public. */
export function drawCheck() {
  const body = h('div', { class: 'draw-check' });
  const element = h('details', { id: 'draw-check', hidden: true }, h('summary', {}, t('draw-check')), body);
  let drawn = '';
  const link = (href, words) => h('a', { href, target: '_blank', rel: 'noopener' }, words);

  function facts(line) {
    const known = [['commitment', line.commitment], ['draw-entries', typeof line.entries === 'number' ? count(line.entries) : null], ['draw-digest', line.digest], ['draw-seed', line.seed], ['draw-beacon', line.beacon]];
    return h('dl', {}, known.filter(([, value]) => value).map(([key, value]) => [h('dt', {}, t(key)), h('dd', { class: 'mono', id: key }, value)]));
  }

  function content(sale, line, entry) {
    const path = `/v1/sales/${encodeURIComponent(sale.sale_id)}/draw`;
    const isSealed = Boolean(line.digest);
    const command = `seckill line verify entries.txt --draw draw.json${entry ? ` --entry ${entry.entry_id}` : ''}`;
    return [
      h('p', {}, t('draw-check-words')), line.needs_beacon ? h('p', {}, t('draw-beacon-words')) : null, facts(line), line.algorithm ? h('p', { class: 'small quiet' }, line.algorithm) : null,
      h('p', { class: 'row' }, link(path, t('draw-file')), isSealed ? link(`${path}/entries`, t('draw-list')) : null, link('/docs/', t('draw-docs'))),
      isSealed ? h('p', { class: 'small' }, t('draw-command'), ' ', h('code', {}, command)) : h('p', { class: 'small quiet' }, t('draw-later')),
    ];
  }

  return {
    element,
    update(sale, line, entry) {
      element.hidden = !line.commitment || line.kind === 'waitlist';
      const next = JSON.stringify([sale.sale_id, line.state, line.digest, line.beacon, entry?.entry_id]);
      if (element.hidden || next === drawn) return;
      drawn = next;
      show(body, content(sale, line, entry));
    },
  };
}
