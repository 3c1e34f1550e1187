// What the token of this tab may do, by its role. The server decides; a button that it would refuse is not offered.

import { role } from './api.js';
import { t } from './words.js';

const ALLOWS = { operate: ['operate', 'operate or money'], money: ['money', 'operate or money'] };

/** Whether a call that needs this role is allowed. */
export const may = (needed) => role() === 'admin' || (ALLOWS[role()] ?? []).includes(needed);

/** The button, disabled with a word why when its call is not allowed. */
export function guarded(needed, button) {
  if (may(needed)) return button;
  button.disabled = true;
  button.title = t('role-needed', { role: needed });
  return button;
}
