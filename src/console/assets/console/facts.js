// Facts of buyers as a line of text.

import { t } from './words.js';

/**
 * Facts as a person types them: `tier: gold, platinum; team: a`. Each has a list of values; an empty text has none. Throws a sentence
 * that says what is expected.
 */
export function typedFacts(text) {
  const facts = {};
  for (const part of text.split(/[;；]/).map((one) => one.trim()).filter(Boolean)) {
    const [, fact, list] = /^([^:：=]+)[:：=](.+)$/.exec(part) ?? [];
    const values = (list ?? '').split(/[,，]/).map((one) => one.trim()).filter(Boolean);
    if (!fact || !values.length) throw new Error(t('facts-expected', { part }));
    facts[fact.trim()] = values;
  }
  return facts;
}
