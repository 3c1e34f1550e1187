// What is known of the line of the sale that is shown, and of the visitor's entry in it: read while something can change, and no more.

import { call } from './buy.js';

/** The public part of a line changes by itself a few times in its life. */
const LINE_MS = 2000;
const ENTRY_MS = 3000;

const isList = ({ line }) => (line?.kind ?? line) === 'waitlist';

/** The line of a sale. A raffle is what its draw says, null until that was read; a waiting list takes entries while the sale's units go by it. */
function lineOf(sale, draw) {
  if (!isList(sale)) return draw;
  return { kind: 'waitlist', state: sale.state === 'ENDED' ? 'DONE' : sale.by_line ? 'OPEN' : 'AWAITED' };
}

/** Whether an entry can change without its buyer: an offer comes, is taken or lapses, or the place in the line moves. */
const moves = ({ kind, state }, entry) => entry !== null && ['WAITING', 'OFFERED'].includes(entry.state) && (kind === 'waitlist' || state === 'DRAWN');

/** `read(sale, visitor)` gives `{line, entry}`, both null where there is none; `take(entry)` puts in what an answer said; `forget()` has all read anew. */
export function lineReader() {
  let of = { sale: null, visitor: null };
  let known = { draw: null, entry: null };
  /** When each may be read next, and the state of the line when the entry was read last. */
  let next = { line: 0, entry: 0, seen: null };

  function forget() {
    next = { line: 0, entry: 0, seen: null };
  }

  function begin(sale, visitor) {
    const wanted = { sale: sale.sale_id, visitor: visitor?.visitor ?? null };
    if (wanted.sale !== of.sale) known.draw = null;
    if (wanted.sale === of.sale && wanted.visitor === of.visitor) return;
    of = wanted;
    known.entry = null;
    forget();
  }

  async function readLine(sale) {
    if (sale.line === null || isList(sale) || Date.now() < next.line) return;
    next.line = Date.now() + LINE_MS;
    const answer = await call('GET', `/v1/sales/${encodeURIComponent(sale.sale_id)}/draw`);
    if (of.sale !== sale.sale_id) return;
    if (answer.status === 200) known.draw = answer.body;
    // A sale that says nothing of lines has none; it is not asked again.
    else if (answer.status === 404) next.line = sale.line ? next.line : Infinity;
    else next.line = Date.now() + Math.max(LINE_MS, answer.waitMs);
  }

  async function readEntry(sale, line, visitor) {
    const isNew = next.seen !== line.state;
    if (Date.now() < next.entry || !(isNew || moves(line, known.entry))) return;
    next.entry = Date.now() + ENTRY_MS;
    const answer = await call('GET', `/v1/sales/${encodeURIComponent(sale.sale_id)}/entries/mine`, { token: visitor.token });
    if (of.sale !== sale.sale_id || of.visitor !== visitor.visitor) return;
    if (answer.status === 200 || answer.status === 404) {
      known.entry = answer.status === 200 ? answer.body : null;
      next.seen = line.state;
    } else {
      next.entry = Date.now() + Math.max(ENTRY_MS, answer.waitMs);
    }
  }

  return {
    forget,
    take(entry) {
      known.entry = entry;
      next.entry = Date.now() + ENTRY_MS;
    },
    async read(sale, visitor) {
      begin(sale, visitor);
      await readLine(sale);
      const line = of.sale === sale.sale_id && sale.line !== null ? lineOf(sale, known.draw) : null;
      if (line && visitor) await readEntry(sale, line, visitor);
      return { line, entry: line ? known.entry : null };
    },
  };
}
