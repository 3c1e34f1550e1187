// The inputs of forms, and what they say in the API's words.

import { h } from './dom.js';
import { t, timeZone } from './words.js';

/** Local date and time for an input, to the second. */
export function local(date) {
  return new Date(date.getTime() - date.getTimezoneOffset() * 60_000).toISOString().slice(0, 19);
}

export const text = (props) => h('input', { type: 'text', required: true, ...props });
export const number = (props) => h('input', { type: 'number', step: 1, inputmode: 'numeric', ...props });
export const moment = (unixMs) => h('input', { type: 'datetime-local', step: 1, required: true, value: local(new Date(unixMs)) });
export const idInput = () => text({ maxlength: 64, pattern: '[A-Za-z0-9_\\-]{1,64}', autocomplete: 'off', spellcheck: 'false' });
export const zoneHint = () => t('time-zone', { zone: timeZone() });
export const rfc3339 = (input) => new Date(input.value).toISOString();
export const numberOrNull = (input) => (input.value === '' ? null : Number(input.value));
