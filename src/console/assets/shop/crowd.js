// The crowd panel: how many, send them, how far they are, what they were answered.

import { call } from './buy.js';
import { field, h, say, show } from './dom.js';
import { count, has, t } from './words.js';

const SIZES = [500, 2000, 5000, 10_000];

/** The panel. `update(state, sale)` gets what the server says every moment. */
export function crowdPanel(saleNow, hurry) {
  const size = h('select', {}, SIZES.map((n) => h('option', { value: n, selected: n === 2000 }, count(n))));
  const go = h('button', { type: 'submit', class: 'primary', id: 'send-crowd' }, t('send'));
  const meter = h('span', {});
  const words = h('p', { id: 'crowd-words', 'aria-live': 'polite', class: 'small' });
  const problem = h('p', { class: 'note bad', role: 'alert', hidden: true });
  const answers = h('ul', { class: 'answers', id: 'crowd-answers' });
  const form = h('form', { class: 'crowd-form' }, field('buyers', t('buyers'), size), go);
  form.addEventListener('submit', async (event) => {
    event.preventDefault();
    go.disabled = true;
    const sale = saleNow();
    const body = { sale_id: sale.sale_id, buyers: Number(size.value), tokens: sale.token_required, room: sale.waiting_room };
    const answer = await call('POST', '/shop/v1/crowds', { body });
    problem.hidden = answer.status === 200;
    if (answer.status !== 200) say(problem, t('crowd-problem', { why: answer.body.detail ?? answer.body.title }));
    hurry();
  });
  function told(crowd) {
    const byStatus = new Map();
    for (const row of crowd.told ?? []) byStatus.set(row.status, (byStatus.get(row.status) ?? 0) + row.count);
    const row = ([status, n]) => h('li', {}, h('span', {}, has(`told-${status}`) ? t(`told-${status}`) : '', ' ', h('code', { class: 'quiet' }, status)), h('strong', { class: 'num' }, count(n)));
    return byStatus.size ? [h('li', { class: 'quiet small' }, t('crowd-done')), [...byStatus].sort(([a], [b]) => a - b).map(row)] : [];
  }
  return {
    element: h('section', { class: 'card panel' }, h('h2', {}, t('crowd')), h('p', { class: 'quiet' }, t('crowd-words')), form, problem, h('div', { class: 'meter' }, meter), words, answers),
    update({ crowd }) {
      const sale = saleNow();
      go.disabled = crowd.running || !sale;
      const { planned, finished, accepted } = crowd.progress;
      meter.style.width = planned ? `${(100 * finished) / planned}%` : '0';
      say(words, crowd.number ? t('crowd-running', { finished: count(finished), planned: count(planned), accepted: count(accepted) }) : '');
      if (crowd.problem) {
        say(problem, t('crowd-problem', { why: crowd.problem }));
        problem.hidden = false;
      }
      show(answers, told(crowd));
    },
  };
}
