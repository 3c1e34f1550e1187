// What a sale needs of its buyers, in words.

import { t } from './words.js';

/** Needs in a few words, e.g. `tier gold / platinum, a pass`. */
export function needed({ pass, ...facts }) {
  const words = Object.entries(facts).map(([fact, values]) => `${fact} ${values.join(' / ')}`);
  return (pass ? [...words, t('a-pass')] : words).join(', ');
}

/** What of the needs `facts` has not. Null when nothing is lacking. */
export function lacking(needs, facts) {
  const missing = Object.entries(needs ?? {}).filter(([fact, values]) => fact === 'pass' || !values.includes(facts[fact]));
  return missing.length ? Object.fromEntries(missing) : null;
}
