// The live pipeline: the picture, the charts, the hops as a table, and who is at work.

import { chart } from './chart.js';
import { h, show } from './dom.js';
import { picture } from './picture.js';
import { count, rate, t, time } from './words.js';

const SPAN_MS = 120_000;
const NAMES = { redis: 'Redis', rabbitmq: 'RabbitMQ', mysql: 'MySQL' };

const perSecond = (n) => (n === null || n === undefined ? '–' : `${rate(n)}${t('per-s')}`);
const breaker = (open) => (open === null ? t('breaker-elsewhere') : open ? t('breaker-open') : t('breaker-closed'));
const last = (list) => list.at(-1) ?? {};
/** The mean of the last few rates: one reading apart is too nervous to read. */
function smooth(history, key) {
  const values = history.slice(-3).map((point) => point[key]).filter((value) => value !== null && value !== undefined);
  return values.length ? values.reduce((a, b) => a + b, 0) / values.length : null;
}

function lag(seconds) {
  if (seconds === null || seconds === undefined) return '–';
  return seconds < 1 ? `${Math.round(seconds * 1000)} ms` : `${seconds.toFixed(1)} s`;
}

/** Orders in the queues and in the hands of the consumers: sent, and neither parked, landed nor failed. A queue shows its
 * messages only, and each has one order or several. */
function onTheWay(point, flows) {
  const { sent, retry, dlq } = point;
  if ([sent, retry, dlq].some((n) => n === null || n === undefined)) return null;
  const units = flows.reduce((total, flow) => total + (flow.admitted ?? 0), 0);
  const requests = flows.reduce((total, flow) => total + (flow.accepted_requests ?? 0), 0);
  // Units and requests are the same number only where everybody wants one.
  return units === requests ? Math.max(0, sent - retry - dlq - point.landed - point.failed) : null;
}

/** What each box shows, and whether it is well. */
export function boxes(snapshot, history) {
  const [redis, rabbit, mysql] = snapshot.servers;
  const point = last(history);
  const { process, queues } = snapshot;
  const consumers = (queues ?? []).filter((queue) => queue.kind === 'orders').reduce((total, queue) => total + queue.consumers, 0);
  const away = { value: t('away'), kind: 'bad' };
  const warn = (n) => (n > 0 ? 'warn' : '');
  const entryKind = process.entry_open === false || !redis.ok ? 'bad' : '';
  const idle = rabbit.ok && queues && consumers === 0;
  return {
    entry: { value: perSecond(smooth(history, 'acceptedRate')), first: process.entry_open === false ? t('entry-closed') : t('admitted-now'), second: t('landing-lag', { lag: lag(process.entry_lag_s) }), kind: entryKind },
    outbox: redis.ok ? { value: count(point.outbox), first: t('waiting'), second: t('in-relay', { n: count(point.pending) }) } : { ...away, first: t('no-answer') },
    relay: { value: perSecond(smooth(history, 'sentRate')), first: t('sent-now'), second: breaker(process.relay_breaker_open), kind: process.relay_breaker_open || !rabbit.ok ? 'bad' : '' },
    queue: rabbit.ok ? { value: count(point.ready), first: t('ready', { retry: count(point.retry) }), second: t('consumers', { n: count(consumers) }), kind: idle ? 'bad' : '' } : { ...away, first: t('no-answer') },
    persist: { value: perSecond(smooth(history, 'landedRate')), first: t('landed-now'), second: breaker(process.persist_breaker_open), kind: process.persist_breaker_open || !mysql.ok ? 'bad' : idle ? 'bad' : '' },
    database: mysql.ok ? { value: count(point.landed), first: t('landed-units'), second: t('failed-units', { n: count(point.failed) }) } : { ...away, first: t('no-answer') },
    'relay-dlq': { value: redis.ok ? count(point.parked) : '–', first: t('parked'), kind: warn(point.parked) },
    'mq-dlq': { value: rabbit.ok ? count(point.dlq) : '–', first: t('parked'), kind: warn(point.dlq) },
    reconcile: { value: mysql.ok ? count(snapshot.register?.open) : '–', first: t('open-rows'), second: snapshot.leader ? t('has-leader') : t('no-leader'), kind: mysql.ok && !snapshot.leader ? 'warn' : warn(snapshot.register?.open) },
  };
}

function hops(rows) {
  const head = ['hop', 'rate', 'lies-there', 'note'].map((key) => h('th', { scope: 'col' }, t(key)));
  return h('table', { class: 'stack' }, h('caption', { class: 'visually-hidden' }, t('hops')), h('thead', {}, h('tr', {}, head)), rows);
}

function hopRows(snapshot, history) {
  const look = boxes(snapshot, history);
  const point = last(history);
  const sent = onTheWay(point, snapshot.sales);
  const row = (name, flow, lies, note) => h('tr', {},
    h('th', { scope: 'row' }, t(`box-${name}`)),
    h('td', { 'data-label': t('rate'), class: 'num' }, flow === undefined ? '–' : perSecond(flow)),
    h('td', { 'data-label': t('lies-there'), class: 'num' }, lies),
    h('td', { 'data-label': t('note') }, look[name].kind === 'bad' ? h('span', { class: 'badge bad' }, note) : note));
  return [
    row('entry', smooth(history, 'acceptedRate'), '–', `${look.entry.first} · ${look.entry.second}`),
    row('outbox', undefined, count(point.outbox), look.outbox.second ?? look.outbox.first),
    row('relay', smooth(history, 'sentRate'), count(point.pending), look.relay.second),
    row('queue', undefined, t('messages', { n: count(point.ready) }), look.queue.second ?? look.queue.first),
    row('persist', smooth(history, 'landedRate'), count(sent), look.persist.second),
    row('database', undefined, count(point.landed), look.database.second ?? look.database.first),
  ];
}

function people(snapshot) {
  const { leader, leases, process, took_ms: took } = snapshot;
  const lease = (one) => h('li', {}, h('code', {}, `#${one.node}`), ' ', h('span', { class: 'mono owner' }, one.owner), ' ',
    one.fence_ms > snapshot.at_ms ? h('span', { class: 'badge good' }, t('lease-held')) : h('span', { class: 'badge warn' }, t('lease-over')));
  return [
    h('dt', {}, t('leader')), h('dd', { id: 'leader' }, leader ? h('span', {}, h('code', {}, leader.host ?? '?'), ` · ${t('connection', { n: leader.connection })}`) : h('span', { class: 'badge warn' }, t('nobody'))),
    h('dt', {}, t('node-leases')), h('dd', {}, leases.length ? h('ul', { class: 'plain-list' }, leases.map(lease)) : t('nobody')),
    h('dt', {}, t('this-process')), h('dd', {}, process.roles.join(', ')),
    h('dt', {}, t('asked-at')), h('dd', { class: 'num' }, `${time(snapshot.at_ms)} · ${took} ms`),
  ];
}

function states(process) {
  const seen = Object.entries(process.states).filter(([, n]) => n > 0).sort(([a], [b]) => a.localeCompare(b));
  const alarming = ['P3-N4', 'P4-C4', 'P5-RC1', 'P5-RC2', 'P5-RC3', 'P5-RC4'];
  return seen.length
    ? seen.map(([code, n]) => h('li', { class: alarming.includes(code) ? 'state warn' : 'state' }, h('code', {}, code), h('span', { class: 'quiet small' }, t(`state-${code}`)), h('strong', { class: 'num' }, count(n))))
    : [h('li', { class: 'quiet' }, t('none-yet'))];
}

export function pipelineView() {
  const frame = h('div', { class: 'card picture-card' });
  const problems = h('div', { class: 'stackable', id: 'problems', role: 'alert' });
  let drawing;
  let told = '';
  const rates = chart({ title: t('chart-rates'), perSecond: true, spanMs: SPAN_MS, lines: [{ key: 'acceptedRate', name: t('admitted') }, { key: 'sentRate', name: t('sent') }, { key: 'landedRate', name: t('landed') }] });
  const waits = chart({ title: t('chart-waits'), spanMs: SPAN_MS, lines: [{ key: 'outbox', name: t('in-outbox') }, { key: 'ready', name: t('in-queues') }] });
  const body = h('tbody', { id: 'hops' });
  const who = h('dl', { class: 'facts' });
  const stateList = h('ul', { class: 'plain-list states' });
  const media = window.matchMedia('(max-width: 760px)');
  const draw = () => { drawing = picture(); show(frame, drawing.element); };
  media.addEventListener('change', draw);
  draw();
  const element = h('div', { class: 'view' }, h('h1', {}, t('pipeline')), problems, frame,
    h('div', { class: 'halves' }, rates.element, waits.element),
    h('section', { class: 'card pad' }, h('h2', {}, t('hops')), hops(body)),
    h('div', { class: 'halves' },
      h('section', { class: 'card pad' }, h('h2', {}, t('at-work')), who),
      h('section', { class: 'card pad' }, h('h2', {}, t('states')), h('p', { class: 'quiet small' }, t('states-words')), stateList)));
  return {
    title: t('pipeline'),
    element,
    close: () => media.removeEventListener('change', draw),
    update({ snapshot, history }) {
      if (!snapshot) return;
      for (const [name, words] of Object.entries(boxes(snapshot, history))) drawing.set(name, words);
      const point = last(history);
      const away = snapshot.servers.filter((server) => !server.ok).map((server) => `${NAMES[server.name]}: ${server.problem}`);
      if (told !== away.join('\n')) {
        told = away.join('\n');
        show(problems, away.map((text) => h('p', { class: 'note bad' }, text)));
      }
      drawing.flow('outbox', point.acceptedRate);
      drawing.flow('relay', point.sentRate);
      drawing.flow('queue', point.sentRate);
      drawing.flow('persist', point.landedRate);
      drawing.flow('database', point.landedRate);
      rates.draw(history, snapshot.at_ms);
      waits.draw(history, snapshot.at_ms);
      show(body, hopRows(snapshot, history));
      show(who, people(snapshot));
      show(stateList, states(snapshot.process));
    },
  };
}
