// What the lists share: their table, reading the same again and again, and a form behind a button.

import { get } from './api.js';
import { h, say } from './dom.js';
import { guarded } from './roles.js';
import { t } from './words.js';

const EVERY_MS = 3000;

/** A table with these columns in a card; on a phone its rows are cards. */
export function table(caption, keys, body) {
  const head = keys.map((key) => h('th', { scope: 'col' }, t(key)));
  return h('div', { class: 'card' }, h('table', { class: 'stack' }, h('caption', { class: 'visually-hidden' }, caption), h('thead', {}, h('tr', {}, head)), body));
}

/** Reads what `path` answers at once and again and again, and hands it to `take`, until `close()`; `problem` says why it could not. */
export function reading(path, take) {
  const problem = h('p', { class: 'note bad', role: 'alert', hidden: true });
  let open = true;
  let timer = 0;
  let turn = 0;
  async function load() {
    // A hidden tab reads nothing.
    if (document.hidden && turn > 0) {
      timer = setTimeout(load, EVERY_MS);
      return;
    }
    turn += 1;
    const mine = turn;
    try {
      const answer = await get(path);
      problem.hidden = true;
      if (open && mine === turn) take(answer);
    } catch (error) {
      say(problem, error.message);
      problem.hidden = false;
    }
    if (open && mine === turn) timer = setTimeout(load, EVERY_MS);
  }
  load();
  /** Reads at once. */
  const now = () => {
    clearTimeout(timer);
    load();
  };
  const close = () => {
    open = false;
    clearTimeout(timer);
  };
  return { problem, close, now };
}

/** The button that shows and hides a form for who may use it. */
export function opener(name, form) {
  form.hidden = true;
  const button = guarded('operate', h('button', { type: 'button', id: name, 'aria-expanded': 'false' }, t(name)));
  button.addEventListener('click', () => {
    form.hidden = !form.hidden;
    button.setAttribute('aria-expanded', String(!form.hidden));
    if (!form.hidden) form.querySelector('input').focus();
  });
  return button;
}
