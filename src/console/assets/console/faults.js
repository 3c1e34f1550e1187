// A form that was refused says so at its end, and at the field that the server names.

import { h, say } from './dom.js';

/** The field that a refusal is about: the server names it, or the sentence of its parser does. */
export const faultyField = (problem) => problem.field ?? /(?:missing|unknown|duplicate) field `(\w+)`/.exec(problem.message)?.[1];

/**
 * What is wrong with `form`: the sentence goes to `summary`. `idOf(problem)` is the id of the control that it is about, if any.
 * `clear()` before the call, `show(problem)` after a refusal.
 */
export function faults(form, summary, idOf) {
  function clear() {
    summary.hidden = true;
    for (const control of form.querySelectorAll('[aria-invalid]')) {
      control.removeAttribute('aria-invalid');
      const hint = `${control.id}-hint`;
      if (document.getElementById(hint)) control.setAttribute('aria-describedby', hint);
      else control.removeAttribute('aria-describedby');
    }
    for (const note of form.querySelectorAll('.fault')) note.remove();
  }
  function mark(control, message) {
    const details = control.closest('details');
    if (details) details.open = true;
    const id = `${control.id}-fault`;
    control.setAttribute('aria-invalid', 'true');
    control.setAttribute('aria-describedby', [control.getAttribute('aria-describedby'), id].filter(Boolean).join(' '));
    (control.closest('.field') ?? control.parentElement).append(h('span', { class: 'fault', id }, message));
    control.focus();
  }
  return {
    clear,
    show(problem) {
      clear();
      say(summary, problem.message);
      summary.hidden = false;
      const id = idOf(problem);
      const control = id ? document.getElementById(id) : null;
      if (control && form.contains(control)) mark(control, problem.message);
    },
  };
}

/** A control in a closed part of the form cannot be shown to be wrong: the part is opened. */
export function opensWhatIsWrong(form) {
  form.addEventListener('invalid', (event) => {
    const details = event.target.closest('details');
    if (details) details.open = true;
  }, true);
}
