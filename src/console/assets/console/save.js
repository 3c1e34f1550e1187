// Files that a button saves.

import { h, say } from './dom.js';
import { t } from './words.js';

/** A button that saves what `blob()` gives, and the place of its problem. */
export function saveButton({ id, words, name, blob }) {
  const problem = h('span', { class: 'note bad', role: 'alert', id: `${id}-problem`, hidden: true });
  const button = h('button', { type: 'button', id }, t(words));
  button.addEventListener('click', async () => {
    button.disabled = true;
    problem.hidden = true;
    try {
      const address = URL.createObjectURL(await blob());
      h('a', { href: address, download: name }).click();
      // The browser has begun to save it by then.
      setTimeout(() => URL.revokeObjectURL(address), 60_000);
    } catch (error) {
      say(problem, error.message);
      problem.hidden = false;
    }
    button.disabled = false;
  });
  return [button, problem];
}
