// Dialogs: the browser's own, so the focus stays inside, Escape closes, and it returns to where it was.

import { field, h, show } from './dom.js';
import { t } from './words.js';

/**
 * Asks before something is done. `work` gets called on the confirming button; what it throws is shown, and the dialog
 * stays. `body` may be an element. Resolves to whether it was done.
 */
export function confirm({ title, body, action, danger, work, ready = true }) {
  return new Promise((resolve) => {
    let done = false;
    const problem = h('p', { class: 'note bad', role: 'alert', hidden: true });
    const yes = h('button', { type: 'submit', class: danger ? 'primary danger-fill' : 'primary', id: 'dialog-yes' }, action);
    const no = h('button', { type: 'button', id: 'dialog-no', on: { click: () => dialog.close() } }, t('cancel'));
    yes.disabled = !ready;
    const form = h('form', { class: 'dialog-body' },
      h('h2', { id: 'dialog-title' }, title),
      typeof body === 'string' ? h('p', {}, body) : body,
      problem,
      h('div', { class: 'row dialog-buttons' }, yes, no));
    form.addEventListener('submit', async (event) => {
      event.preventDefault();
      yes.disabled = true;
      yes.setAttribute('aria-busy', 'true');
      problem.hidden = true;
      try {
        await work();
        done = true;
        dialog.close();
      } catch (error) {
        show(problem, error.message);
        problem.hidden = false;
        yes.disabled = false;
      }
      yes.removeAttribute('aria-busy');
    });
    const dialog = h('dialog', { 'aria-labelledby': 'dialog-title', class: 'card' }, form);
    dialog.addEventListener('close', () => {
      dialog.remove();
      resolve(done);
    });
    document.body.append(dialog);
    dialog.showModal();
  });
}

/** Asks for the name `id` before something is done for good. */
export function confirmByName({ id, title, words, action, work }) {
  const typed = h('input', { type: 'text', required: true, autocomplete: 'off', spellcheck: 'false' });
  return confirm({
    title,
    body: h('div', { class: 'stackable' }, h('p', {}, words), field('typed', t('type-name', { sale: id }), typed)),
    action,
    danger: true,
    work: async () => {
      if (typed.value.trim() !== id) throw new Error(t('type-name', { sale: id }));
      await work();
    },
  });
}

/** Shows what was done, for a few seconds; read out by a screen reader. */
export function toast(text, kind = 'good') {
  const box = h('div', { class: `toast note ${kind}` }, text);
  document.getElementById('toasts').append(box);
  setTimeout(() => box.remove(), 6000);
}
