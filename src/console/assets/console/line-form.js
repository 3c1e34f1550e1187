// The line of a new sale, in the forms that make one.

import { check, field, h } from './dom.js';
import { rfc3339, zoneHint } from './inputs.js';
import { t } from './words.js';

const KINDS = ['raffle', 'waitlist'];

/** Inputs whose ids begin with `prefix`: the kind, the close of entries and whether the draw waits for a text. `value()` is what the API takes. */
export function lineInputs(prefix) {
  const kind = h('select', { class: 'wide' }, h('option', { value: '' }, t('line-none')), KINDS.map((value) => h('option', { value }, t(`line-${value}`))));
  const closes = h('input', { type: 'datetime-local', step: 1 });
  const beacon = check(`${prefix}-line-beacon`, t('line-beacon'), false);
  const closesField = field(`${prefix}-line-closes`, t('line-closes'), closes, `${t('line-closes-hint')} ${zoneHint()}`);
  // Only a raffle has a close and a draw.
  const follow = () => { for (const part of [closesField, beacon.element]) part.hidden = kind.value !== 'raffle'; };
  kind.addEventListener('change', follow);
  follow();
  return {
    fields: [field(`${prefix}-line`, t('line'), kind, t('line-hint')), closesField],
    check: beacon.element,
    value() {
      if (kind.value === '') return {};
      const raffle = kind.value === 'raffle' ? { line_closes_at: closes.value ? rfc3339(closes) : null, line_beacon: beacon.box.checked } : {};
      return { line: kind.value, ...raffle };
    },
  };
}
