// Small line charts, drawn by hand in SVG. Time runs to the right; every line has a name, a dash of its own, and a last value
// in words, so colour is never the only difference.

import { h, s, show } from './dom.js';
import { count, rate, t } from './words.js';

const HEIGHT = 170;
const SPAN_MIN_MS = 20_000;
const LEFT = 46;
const BOTTOM = 20;
const TOP = 10;

/** A round number at or above `value`. */
export function ceiling(value) {
  if (value <= 4) return 4;
  const step = 10 ** Math.floor(Math.log10(value));
  // Half of it is drawn too, and has to be whole.
  return [1, 2, 4, 6, 10].map((times) => times * step).find((top) => top >= value);
}

/** The path of points, broken where a value is not known. A point by itself is drawn as a dot. */
export function path(points, x, y) {
  let pen = 'M';
  let text = '';
  for (const [at, value] of points) {
    if (value === null || value === undefined || Number.isNaN(value)) {
      pen = 'M';
    } else {
      text += `${pen}${x(at).toFixed(1)} ${y(value).toFixed(1)}${pen === 'M' ? 'h.01' : ''}`;
      pen = 'L';
    }
  }
  return text;
}

/** A chart of `lines`: `{key, name}` each. `spanMs` is how far it goes back at most. */
export function chart({ title, lines, spanMs, perSecond, wide }) {
  // One unit is about one pixel, so that the letters have one size everywhere.
  const width = window.matchMedia('(max-width: 760px)').matches ? 350 : wide ? 1180 : 580;
  const plot = s('g', {});
  const svg = s('svg', { viewBox: `0 0 ${width} ${HEIGHT}`, class: 'chart', role: 'img', 'aria-label': title }, plot);
  const values = Object.fromEntries(lines.map(({ key }) => [key, h('strong', { class: 'num' }, '–')]));
  const legend = h('ul', { class: 'legend' }, lines.map(({ key, name }) =>
    h('li', { class: `line-${key}` }, h('span', { class: 'swatch', 'aria-hidden': 'true' }), `${name} `, values[key])));
  const form = perSecond ? (value) => (value === null || value === undefined ? '–' : `${rate(value)}${t('per-s')}`) : count;

  function draw(history, now) {
    // As long as little was seen, that little fills the chart.
    const span = Math.min(spanMs, Math.max(SPAN_MIN_MS, now - (history[0]?.at ?? now)));
    const from = now - span;
    const seen = history.filter((point) => point.at >= from - 2000);
    const highest = Math.max(1, ...seen.flatMap((point) => lines.map(({ key }) => point[key] ?? 0)));
    const top = ceiling(highest);
    const x = (at) => LEFT + ((Math.max(at, from) - from) / span) * (width - LEFT - 6);
    const y = (value) => HEIGHT - BOTTOM - (value / top) * (HEIGHT - BOTTOM - TOP);
    const grid = [0, 0.5, 1].map((part) => [
      s('line', { class: 'grid', x1: LEFT, x2: width - 6, y1: y(part * top), y2: y(part * top) }),
      s('text', { class: 'tick', x: LEFT - 6, y: y(part * top) + 4, 'text-anchor': 'end' }, count(part * top)),
    ]);
    const drawn = lines.map(({ key }) => s('path', { class: `line line-${key}`, d: path(seen.map((p) => [p.at, p[key]]), x, y) }));
    const ends = [
      s('text', { class: 'tick', x: LEFT, y: HEIGHT - 4 }, `−${Math.round(span / 1000)} s`),
      s('text', { class: 'tick', x: width - 6, y: HEIGHT - 4, 'text-anchor': 'end' }, t('now')),
    ];
    show(plot, grid, drawn, ends);
    const last = seen.at(-1);
    for (const { key } of lines) values[key].textContent = last ? form(last[key]) : '–';
  }
  return { element: h('figure', { class: 'card chart-card' }, h('figcaption', {}, h('h2', {}, title)), svg, legend), draw };
}
