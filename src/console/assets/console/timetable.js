// What happens to a sale's stock by itself.

import { serverNow } from './api.js';
import { h } from './dom.js';
import { count, shortTime, t, time } from './words.js';

/** Its next release, and where its rest goes; `given` says of each release whether it was given. */
export function timetable({ releases, rollover_to: to }, given) {
  const next = releases.findIndex((_, at) => !given[at]);
  const left = releases.length - next - 1;
  const lines = [];
  if (next >= 0) lines.push(h('div', {}, t('next-release', { n: count(releases[next].units) }), h('div', { class: 'small nowrap', title: time(Date.parse(releases[next].at)) }, shortTime(Date.parse(releases[next].at), serverNow()))));
  else if (releases.length) lines.push(h('div', { class: 'quiet small' }, t('releases-given', { n: count(releases.length) })));
  if (next >= 0 && left > 0) lines.push(h('div', { class: 'quiet small' }, t('more-releases', { n: count(left) })));
  if (to) lines.push(h('div', { class: 'small' }, t('rest-to'), ' ', h('code', {}, to)));
  return lines.length ? h('div', {}, lines) : '–';
}
