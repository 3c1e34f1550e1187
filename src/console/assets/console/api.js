// Calls to the admin API. The token lives in this tab only (sessionStorage) and goes nowhere but into the header.

const TOKEN = 'seckill.token';
const NAME = 'seckill.operator';
const ROLE = 'seckill.role';
const TIMEOUT_MS = 20_000;
/** A smaller difference between two clocks than this is no difference: answers have whole seconds. */
const CLOCK_MS = 1_000;
let signedOut = () => {};
let ahead = 0;

/** An answer that is not a success, or none at all (status 0). */
export class Problem extends Error {
  constructor(status, document) {
    super(document.detail ?? document.title ?? `HTTP ${status}`);
    this.status = status;
    this.code = document.code;
    this.title = document.title;
    /** The field of the body that cannot be used, and the sale of a drop that has it. */
    this.field = document.field;
    this.sale = document.sale_id;
  }
}

/** Called when the token is refused. */
export const onSignedOut = (handler) => { signedOut = handler; };
export const isSignedIn = () => sessionStorage.getItem(TOKEN) !== null;
export const operator = () => sessionStorage.getItem(NAME) ?? '';
/** The role of the token: view, operate, money, or admin, which has all of them. */
export const role = () => sessionStorage.getItem(ROLE) ?? 'admin';
/** The server's time, Unix milliseconds: the clock of this computer may be wrong by hours. */
export const serverNow = () => Date.now() + ahead;

function learnTime(date, asked) {
  const now = Date.parse(date ?? '') + 500 - (asked + Date.now()) / 2;
  if (Math.abs(now - ahead) > CLOCK_MS) ahead = now;
}

export function signOut() {
  sessionStorage.removeItem(TOKEN);
}

async function send(method, path, token, body, timeoutMs, read = (answer) => answer.json().catch(() => ({}))) {
  const headers = { Authorization: `Bearer ${token}`, 'Accept-Language': document.documentElement.lang };
  if (body !== undefined) headers['Content-Type'] = 'application/json';
  const asked = Date.now();
  let answer;
  try {
    const options = { method, headers, cache: 'no-store', signal: AbortSignal.timeout(timeoutMs) };
    if (body !== undefined) options.body = JSON.stringify(body);
    answer = await fetch(`/admin/v1${path}`, options);
  } catch (error) {
    throw new Problem(0, { detail: error.message });
  }
  learnTime(answer.headers.get('Date'), asked);
  if (!answer.ok) throw new Problem(answer.status, await answer.json().catch(() => ({})));
  return read(answer);
}

/** Tries a token; keeps it when it is right. */
export async function signIn(token, name) {
  const { may } = await send('GET', '/whoami', token, undefined, TIMEOUT_MS);
  sessionStorage.setItem(TOKEN, token);
  sessionStorage.setItem(ROLE, may);
  sessionStorage.setItem(NAME, name);
}

async function call(method, path, body, timeoutMs = TIMEOUT_MS, read = undefined) {
  try {
    return await send(method, path, sessionStorage.getItem(TOKEN) ?? '', body, timeoutMs, read);
  } catch (problem) {
    if (problem.status === 401) signedOut();
    throw problem;
  }
}

export const get = (path) => call('GET', path);
/** A whole file; one that is cut off is an error. The header with the token does not go with a plain link. */
export const file = (path, timeoutMs) => call('GET', path, undefined, timeoutMs, (answer) => answer.blob());
/** A write, with who acts; `{}` when it says nothing but its address. A replay of thousands may take minutes. */
export const post = (path, body = {}, timeoutMs = TIMEOUT_MS) => call('POST', path, { by: operator(), ...body }, timeoutMs);
