// Calls to the admin API. The token lives in this tab only (sessionStorage) and goes nowhere but into the header.

const TOKEN = 'seckill.token';
const NAME = 'seckill.operator';
const TIMEOUT_MS = 20_000;
let signedOut = () => {};

/** An answer that is not a success, or none at all (status 0). */
export class Problem extends Error {
  constructor(status, document) {
    super(document.detail ?? document.title ?? `HTTP ${status}`);
    this.status = status;
    this.code = document.code;
    this.title = document.title;
  }
}

/** Called when the token is refused. */
export const onSignedOut = (handler) => { signedOut = handler; };
export const isSignedIn = () => sessionStorage.getItem(TOKEN) !== null;
export const operator = () => sessionStorage.getItem(NAME) ?? '';
export function signOut() {
  sessionStorage.removeItem(TOKEN);
}

async function send(method, path, token, body, timeoutMs) {
  const headers = { Authorization: `Bearer ${token}`, 'Accept-Language': document.documentElement.lang };
  if (body !== undefined) headers['Content-Type'] = 'application/json';
  let answer;
  try {
    const options = { method, headers, cache: 'no-store', signal: AbortSignal.timeout(timeoutMs) };
    if (body !== undefined) options.body = JSON.stringify(body);
    answer = await fetch(`/admin/v1${path}`, options);
  } catch (error) {
    throw new Problem(0, { detail: error.message });
  }
  const document_ = await answer.json().catch(() => ({}));
  if (!answer.ok) throw new Problem(answer.status, document_);
  return document_;
}

/** Tries a token; keeps it when it is right. */
export async function signIn(token, name) {
  await send('GET', '/whoami', token, undefined, TIMEOUT_MS);
  sessionStorage.setItem(TOKEN, token);
  sessionStorage.setItem(NAME, name);
}

async function call(method, path, body, timeoutMs = TIMEOUT_MS) {
  try {
    return await send(method, path, sessionStorage.getItem(TOKEN) ?? '', body, timeoutMs);
  } catch (problem) {
    if (problem.status === 401) signedOut();
    throw problem;
  }
}

export const get = (path) => call('GET', path);
/** A write, with who acts; `{}` when it says nothing but its address. A replay of thousands may take minutes. */
export const post = (path, body = {}, timeoutMs = TIMEOUT_MS) => call('POST', path, { by: operator(), ...body }, timeoutMs);
