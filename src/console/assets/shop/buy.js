// One purchase as a browser should make it: a token first, so that every repeat is the same purchase; then the order; then
// listening until the database has spoken.

import { needed } from './needs.js';
import { expectedTries, solve } from './solver.js';
import { count, t } from './words.js';

const TIMEOUT_MS = 10_000;
const TRIES = 8;

const pause = (ms) => new Promise((resolve) => { setTimeout(resolve, ms); });

/** A call to the public API; status 0 when there was no answer. */
export async function call(method, path, { token, headers = {}, body } = {}) {
  const all = { 'Accept-Language': document.documentElement.lang, ...headers };
  if (token) all.Authorization = `Bearer ${token}`;
  if (body !== undefined) all['Content-Type'] = 'application/json';
  try {
    const answer = await fetch(path, { method, headers: all, cache: 'no-store', body: body === undefined ? undefined : JSON.stringify(body), signal: AbortSignal.timeout(TIMEOUT_MS) });
    const document_ = await answer.json().catch(() => ({}));
    return { status: answer.status, body: document_, waitMs: Number(answer.headers.get('retry-after') ?? 1) * 1000 };
  } catch (error) {
    return { status: 0, body: { title: error.message }, waitMs: 1000 };
  }
}

/** How many are before a buyer, and about how long that takes, where it is known. */
function ahead({ ahead: n, estimated_wait_s: seconds }) {
  if (n === undefined) return t('place-drawn');
  const minutes = Math.ceil((seconds ?? 0) / 60);
  return minutes > 0 ? t('place-ahead-about', { n, minutes }) : t('place-ahead', { n });
}

/** Waits in the sale's waiting room; the ticket, or the refusal. */
async function room(sale, token, tell) {
  let ticket;
  for (;;) {
    const headers = ticket ? { 'Seckill-Place': ticket } : {};
    const answer = await call(ticket ? 'GET' : 'POST', `/v1/sales/${sale}/places`, { token, headers });
    if (answer.status === 200) {
      ticket = answer.body.ticket ?? ticket;
      if (answer.body.state === 'released') return { ticket };
      tell({ step: 'place', detail: ahead(answer.body) });
    } else if (![0, 429, 503].includes(answer.status)) {
      return { refused: answer };
    }
    await pause(answer.waitMs);
  }
}

/** Repeats what may be repeated: no answer, busy, unknown. */
async function persist(attempt, tell) {
  let answer;
  for (let n = 1; n <= TRIES; n += 1) {
    answer = await attempt();
    if (![0, 429, 503, 504].includes(answer.status)) return answer;
    tell({ detail: t('asking-again', { n }) });
    await pause(Math.min(answer.waitMs, 3000));
  }
  return answer;
}

/** Why a call was refused, in words; of a sale that needs something also what, and of a drop its limit. */
function whyNot({ status, body: { title, code, detail, needs } }, sale) {
  if (code === 'P1-Q1' && needs) return `${title}. ${t('it-needs', { what: needed(needs) })}`;
  if (code === 'P1-Q1' && detail) return `${title} (${detail})`;
  if (code === 'P2-R5' && sale.drop_limit !== null && sale.per_user_limit === null) return `${title}. ${t('limit-over-all', { n: count(sale.drop_limit) })}`;
  return title ?? String(status);
}

/** A purchase token, or the refusal. Who asks for a proof of work gets one, and a new one if it came too late. */
async function purchaseToken(sale, { token, headers, report, signal }) {
  for (;;) {
    const issued = await persist(() => call('POST', `/v1/sales/${sale}/tokens`, { token, headers }), report);
    const { challenge } = issued.body;
    if (issued.status !== 428 || !challenge) return issued;
    const expected = expectedTries(challenge.bits);
    const detail = t('solving', { n: count(expected) });
    report({ step: 'token', detail, solving: 0 });
    try {
      // How likely it would be solved by now: no try brings the next one nearer.
      headers['Seckill-Solution'] = await solve(challenge, signal, (tries) => report({ solving: 1 - Math.exp(-tries / expected) }));
    } catch (error) {
      return { status: 0, body: { title: signal.aborted ? t('solving-stopped') : t('solving-failed', { why: error.message }) } };
    } finally {
      report({ step: 'token', solving: null });
    }
  }
}

/**
 * Buys one unit. A proof of work is solved until `signal` is aborted. `tell({step, detail, solving, requestId, why})` gets every step: `place`, `token`, `asking`, `queued`, `refused`,
 * `unknown`. Returns the request id when somebody may still answer for it.
 */
export async function buy(sale, token, tell, signal) {
  const headers = {};
  if (sale.waiting_room) {
    tell({ step: 'place' });
    const { ticket, refused } = await room(sale.sale_id, token, tell);
    if (refused) {
      tell({ step: 'refused', why: whyNot(refused, sale) });
      return null;
    }
    headers['Seckill-Place'] = ticket;
  }
  tell({ step: 'token' });
  const issued = await purchaseToken(sale.sale_id, { token, headers, report: tell, signal });
  if (issued.status !== 201) {
    tell({ step: 'refused', why: whyNot(issued, sale) });
    return null;
  }
  const requestId = issued.body.request_id;
  tell({ step: 'asking', requestId });
  const order = () => call('POST', `/v1/sales/${sale.sale_id}/orders`, { token, headers: { 'Idempotency-Key': issued.body.token }, body: { quantity: 1 } });
  const answer = await persist(order, tell);
  if (answer.status === 202) {
    tell({ step: 'queued', requestId });
    return requestId;
  }
  if ([0, 503, 504].includes(answer.status)) {
    tell({ step: 'unknown', requestId, detail: t('gave-up') });
    return answer.status === 503 ? null : requestId;
  }
  tell({ step: 'refused', why: whyNot(answer, sale) });
  return null;
}

/** Reads one stream of events; the last status it sent. */
async function listen(sale, requestId, token, tell) {
  const answer = await fetch(`/v1/sales/${sale}/orders/${requestId}/events`, { headers: { Authorization: `Bearer ${token}`, Accept: 'text/event-stream' }, cache: 'no-store' });
  if (answer.status === 404) return { status: 'NONE' };
  if (!answer.ok) throw new Error(String(answer.status));
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = '';
  let last = null;
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return last;
    const events = (rest + value).split('\n\n');
    rest = events.pop();
    for (const event of events) {
      const data = event.split('\n').filter((line) => line.startsWith('data:')).map((line) => line.slice(5)).join('\n');
      if (data) {
        last = JSON.parse(data);
        tell(last);
      }
    }
  }
}

/** Follows a request until it is CONFIRMED or FAILED, through every broken connection, as long as `wanted()` says so. */
export async function follow(sale, requestId, token, tell, wanted) {
  while (wanted()) {
    const last = await listen(sale, requestId, token, tell).catch(() => null);
    if (last && last.status !== 'QUEUED') return last;
    await pause(1000);
  }
  return null;
}
