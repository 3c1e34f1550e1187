// Webhooks: what waits for each receiver, what is dead, and its replay.

import { get, operator, post } from './api.js';
import { confirm, toast } from './dialog.js';
import { h, say, show } from './dom.js';
import { guarded } from './roles.js';
import { count, t } from './words.js';

const ACT_TIMEOUT_MS = 600_000;

function replayDialog(webhook, done) {
  return confirm({
    title: t('webhook-replay-title', { name: webhook.name, n: count(webhook.dead) }),
    body: t('webhook-replay-words'),
    action: t('webhook-replay'),
    work: async () => {
      const { replayed } = await post('/webhooks/replay', { dead: true, webhook: webhook.name, by: operator() }, ACT_TIMEOUT_MS);
      toast(t('webhook-replayed', { n: count(replayed) }));
      done();
    },
  });
}

/** Nothing to see where no webhook is configured and none has rows. */
export function webhooksCard() {
  const body = h('tbody', { id: 'webhooks' });
  const problem = h('p', { class: 'note bad', role: 'alert', hidden: true });
  function row(webhook) {
    const cell = (key, ...content) => h('td', { 'data-label': t(key) }, content);
    const replay = guarded('operate', h('button', { type: 'button', on: { click: () => replayDialog(webhook, load) } }, t('webhook-replay')));
    return h('tr', { data: { webhook: webhook.name } },
      h('th', { scope: 'row' }, h('code', {}, webhook.name), h('div', { class: 'quiet small' }, webhook.configured ? webhook.url : t('webhook-unconfigured'))),
      cell('webhook-waiting', h('span', { class: 'num' }, count(webhook.waiting)), webhook.waiting ? h('div', { class: 'quiet small' }, t('webhook-oldest', { n: count(webhook.oldest_s) })) : null),
      cell('webhook-dead', h('span', { class: `badge ${webhook.dead ? 'bad' : 'good'}` }, count(webhook.dead))),
      cell('act', webhook.dead && webhook.configured ? replay : '–'));
  }
  const head = ['webhook', 'webhook-waiting', 'webhook-dead', 'act'].map((key) => h('th', { scope: 'col' }, t(key)));
  const element = h('section', { class: 'card pad', id: 'webhooks-card', hidden: true }, h('h2', {}, t('webhooks')), h('p', { class: 'quiet' }, t('webhooks-words')), problem,
    h('table', { class: 'stack' }, h('caption', { class: 'visually-hidden' }, t('webhooks')), h('thead', {}, h('tr', {}, head)), body));
  async function load() {
    try {
      const { webhooks } = await get('/webhooks');
      problem.hidden = true;
      show(body, webhooks.map(row));
      element.hidden = webhooks.length === 0;
    } catch (error) {
      say(problem, error.message);
      problem.hidden = false;
      element.hidden = false;
    }
  }
  return { element, load };
}
