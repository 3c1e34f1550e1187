// The pipeline as a picture: roles and servers as boxes, what flows as moving lines, dead letters aside. Lies on wide screens,
// stands on narrow ones.

import { s, say } from './dom.js';
import { t } from './words.js';

const MAIN = ['entry', 'outbox', 'relay', 'queue', 'persist', 'database'];
const SIDE = { 'relay-dlq': 'outbox', 'mq-dlq': 'queue', reconcile: 'database' };
const SERVERS = ['outbox', 'queue', 'database'];

/** Where every box is: {x, y, w, h} by name, with the size of the whole. */
export function places(narrow) {
  const boxes = {};
  if (narrow) {
    MAIN.forEach((name, at) => { boxes[name] = { x: 4, y: 4 + at * 128, w: 208, h: 98 }; });
    for (const [name, beside] of Object.entries(SIDE)) boxes[name] = { x: 250, y: boxes[beside].y + 6, w: 126, h: 86 };
    return { boxes, width: 380, height: 128 * MAIN.length - 22 };
  }
  MAIN.forEach((name, at) => { boxes[name] = { x: 4 + at * 200, y: 8, w: 164, h: 116 }; });
  for (const [name, below] of Object.entries(SIDE)) boxes[name] = { ...boxes[below], y: 190, h: 92 };
  return { boxes, width: 1172, height: 290 };
}

function line(from, to, narrow, name, kind) {
  const middle = (box) => [box.x + box.w / 2, box.y + box.h / 2];
  let d;
  if (kind === 'repair') {
    d = narrow ? `M${from.x} ${middle(from)[1]}H${to.x + to.w + 3}` : `M${middle(from)[0]} ${from.y}V${to.y + to.h + 3}`;
  } else if (kind === 'aside') {
    d = narrow ? `M${from.x + from.w} ${middle(from)[1]}H${to.x - 3}` : `M${middle(from)[0]} ${from.y + from.h}V${to.y - 3}`;
  } else {
    d = narrow ? `M${middle(from)[0]} ${from.y + from.h}V${to.y - 3}` : `M${from.x + from.w} ${middle(from)[1]}H${to.x - 3}`;
  }
  return s('path', { d, class: `pipe ${kind}`, id: `pipe-${name}`, 'marker-end': `url(#tip-${kind})` });
}

function box(name, place) {
  const { x, y, w, h: height } = place;
  const server = SERVERS.includes(name);
  const words = (className, dy) => s('text', { class: className, x: x + 14, y: y + dy });
  // Lines of text by the height of the box: side boxes, boxes of the narrow picture, boxes of the wide one.
  const [a, b, c] = height < 95 ? [47, 64, 79] : height < 105 ? [52, 72, 88] : [57, 80, 99];
  const [value, first, second] = [words('value', a), words('first', b), words('second', c)];
  const element = s('g', { class: `box ${server ? 'server' : 'role'} ${name in SIDE ? 'side' : ''}`, id: `box-${name}` },
    s('rect', { x, y, width: w, height, rx: server ? 18 : 10 }),
    s('rect', { class: 'edge', x, y: y + (server ? 20 : 12), width: 4, height: height - (server ? 40 : 24), rx: 2 }),
    s('text', { class: 'name', x: x + 14, y: y + 24 }, t(`box-${name}`)), value, first, second);
  return { element, value, first, second };
}

/** The picture. `set(name, {value, first, second, kind})` and `flow(name, perSecond)` change it. */
export function picture() {
  const narrow = window.matchMedia('(max-width: 760px)').matches;
  const { boxes, width, height } = places(narrow);
  const tips = ['main', 'aside', 'repair'].map((kind) => s('marker', { id: `tip-${kind}`, viewBox: '0 0 8 8', refX: 5, refY: 4, markerWidth: 7, markerHeight: 7, orient: 'auto', class: `tip ${kind}`, markerUnits: 'userSpaceOnUse' }, s('path', { d: 'M0 0L8 4L0 8z' })));
  const pipes = MAIN.slice(1).map((name, at) => line(boxes[MAIN[at]], boxes[name], narrow, name, 'main'));
  const asides = Object.entries(SIDE).map(([name, from]) => (name === 'reconcile'
    ? line(boxes[name], boxes[from], narrow, name, 'repair') : line(boxes[from], boxes[name], narrow, name, 'aside')));
  const parts = Object.fromEntries(Object.entries(boxes).map(([name, place]) => [name, box(name, place)]));
  const element = s('svg', { viewBox: `0 0 ${width} ${height}`, class: narrow ? 'picture narrow' : 'picture', role: 'img', 'aria-label': t('picture-label') },
    s('defs', {}, tips), pipes, asides, Object.values(parts).map((part) => part.element));
  return {
    element,
    narrow,
    set(name, { value, first = '', second = '', kind = '' }) {
      const part = parts[name];
      say(part.value, value);
      say(part.first, first);
      say(part.second, second);
      part.element.setAttribute('data-kind', kind);
    },
    flow(name, perSecond) {
      const pipe = element.querySelector(`#pipe-${name}`);
      pipe.setAttribute('data-flow', perSecond > 200 ? 'fast' : perSecond > 0 ? 'slow' : 'none');
    },
  };
}
