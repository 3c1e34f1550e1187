// The contract as a page: every call of /openapi.json with what it takes and gives, and a form that sends it.

import { field, h, say, show } from './dom.js';

const METHODS = ['get', 'post', 'put', 'patch', 'delete'];
// A mistake in a typed address shows at once; a status question may wait for up to 30 s.
const DEADLINE_MS = 40_000;

const app = document.getElementById('app');
const token = h('input', { type: 'password', autocomplete: 'off', spellcheck: 'false', placeholder: 'eyJ…' });

/** Follows `#/components/…` references of the document. */
const resolve = (spec, node) =>
  node?.$ref ? resolve(spec, node.$ref.slice(2).split('/').reduce((at, key) => at[key], spec)) : node;

/** A schema's type in a word or two. */
function typeOf(spec, schema) {
  if (!schema) return '';
  if (schema.$ref) return schema.$ref.split('/').pop();
  if (schema.oneOf) return schema.oneOf.map((one) => typeOf(spec, one)).join(' | ');
  if (schema.allOf) return schema.allOf.map((one) => typeOf(spec, one)).join(' & ');
  const type = [schema.type ?? 'any'].flat().map((one) => (one === 'array' ? `${typeOf(spec, schema.items)}[]` : one)).join(' | ');
  return schema.format ? `${type} (${schema.format})` : type;
}

/** What a value has to be, beyond its type. */
function bounds(schema) {
  const said = [];
  if (schema?.minimum !== undefined) said.push(`from ${schema.minimum}`);
  if (schema?.maximum !== undefined) said.push(`up to ${schema.maximum}`);
  if (schema?.minLength !== undefined) said.push(`at least ${schema.minLength} characters`);
  if (schema?.maxLength !== undefined) said.push(`at most ${schema.maxLength} characters`);
  if (schema?.pattern) said.push(schema.pattern);
  if (schema?.enum) said.push(schema.enum.join(', '));
  if (schema?.default !== undefined) said.push(`default ${JSON.stringify(schema.default)}`);
  return said.join('; ');
}

function table(heads, rows) {
  const head = h('thead', {}, h('tr', {}, heads.map((text) => h('th', { scope: 'col' }, text))));
  const body = h('tbody', {}, rows.map((cells) => h('tr', {}, cells.map((cell) => h('td', {}, cell)))));
  return h('div', { class: 'scroll' }, h('table', {}, head, body));
}

/** The fields of an object, one row each. */
function fields(spec, schema) {
  const object = resolve(spec, schema);
  const required = object?.required ?? [];
  const rows = Object.entries(object?.properties ?? {}).map(([name, value]) => {
    const known = resolve(spec, value);
    return [
      h('code', {}, name),
      typeOf(spec, value) + (required.includes(name) ? '' : ', optional'),
      [known?.description ?? value.description, bounds(known)].filter(Boolean).join(' — '),
    ];
  });
  return rows.length ? table(['Field', 'Type', ''], rows) : h('p', { class: 'quiet' }, typeOf(spec, schema) || 'no body');
}

/** The JSON body schema of a request or an answer, whatever its media type is called. */
const jsonOf = (part) => Object.values(part?.content ?? {})[0]?.schema;

function parameters(spec, list) {
  if (!list.length) return null;
  const rows = list.map((one) => [
    h('code', {}, one.name),
    `${one.in}${one.required ? '' : ', optional'}`,
    typeOf(spec, one.schema),
    [one.description, bounds(one.schema)].filter(Boolean).join(' — '),
  ]);
  return h('div', {}, h('h3', {}, 'Parameters'), table(['Name', 'In', 'Type', ''], rows));
}

function answers(spec, responses) {
  const rows = Object.entries(responses ?? {}).map(([status, response]) => {
    const known = resolve(spec, response);
    return [h('code', {}, status), known.description ?? '', typeOf(spec, jsonOf(known))];
  });
  return h('div', {}, h('h3', {}, 'Answers'), table(['Status', 'When', 'Body'], rows));
}

/** An object to start from: examples and defaults of the schema. */
function sample(spec, schema) {
  const object = resolve(spec, schema);
  const values = Object.entries(object?.properties ?? {}).map(([name, value]) => {
    const known = resolve(spec, value);
    return [name, known?.example ?? known?.default];
  });
  return JSON.stringify(Object.fromEntries(values.filter(([, value]) => value !== undefined)), null, 2);
}

/** Sends the call as it stands in the form and shows what comes back. */
async function send(call, inputs, body, out) {
  let address = call.path;
  const query = new URLSearchParams();
  const headers = {};
  for (const [one, input] of inputs) {
    const value = input.value.trim();
    if (one.in === 'path') address = address.replace(`{${one.name}}`, encodeURIComponent(value));
    else if (value && one.in === 'query') query.set(one.name, value);
    else if (value && one.in === 'header') headers[one.name] = value;
  }
  if (token.value.trim()) headers.Authorization = `Bearer ${token.value.trim()}`;
  if (body) headers['Content-Type'] = 'application/json';
  const asked = query.size ? `${address}?${query}` : address;
  say(out, `${call.method.toUpperCase()} ${asked} …`);
  try {
    const signal = AbortSignal.timeout(DEADLINE_MS);
    const answer = await fetch(asked, { method: call.method, headers, body: body?.value, signal });
    const text = await answer.text();
    let shown = text;
    try {
      shown = JSON.stringify(JSON.parse(text), null, 2);
    } catch {
      // Not JSON: shown as it came.
    }
    const told = [...answer.headers].map(([name, value]) => `${name}: ${value}`).join('\n');
    say(out, `${answer.status} ${answer.statusText}\n${told}\n\n${shown}`);
  } catch (error) {
    say(out, `No answer: ${error.message}`);
  }
}

function form(spec, call, list) {
  const inputs = list.map((one) => [one, h('input', { autocomplete: 'off', required: one.in === 'path' })]);
  const schema = jsonOf(call.requestBody);
  const body = schema ? h('textarea', { spellcheck: 'false' }) : null;
  if (body) body.value = sample(spec, schema);
  const out = h('pre', { 'aria-live': 'polite', hidden: true });
  const name = `${call.method}-${call.path}`.replace(/[^a-z0-9]+/gi, '-');
  const sent = (event) => {
    event.preventDefault();
    out.hidden = false;
    send(call, inputs, body, out);
  };
  return h(
    'form',
    { on: { submit: sent } },
    h('h3', {}, 'Try it'),
    inputs.map(([one, input]) => field(`${name}-${one.name}`, one.name, input)),
    body ? field(`${name}-body`, 'Body', body) : null,
    h('div', {}, h('button', { class: 'primary', type: 'submit' }, 'Send')),
    out,
  );
}

function card(spec, call) {
  const list = (call.parameters ?? []).map((one) => resolve(spec, one));
  const schema = jsonOf(call.requestBody);
  return h(
    'details',
    { class: 'card' },
    h(
      'summary',
      {},
      h('span', { class: `badge method ${call.method === 'get' ? 'blue' : 'good'}` }, call.method.toUpperCase()),
      h('code', { class: 'path' }, call.path),
      call.security?.length ? h('span', { class: 'badge' }, 'access token') : null,
      h('span', { class: 'quiet small' }, call.summary ?? ''),
    ),
    call.description ? h('p', {}, call.description) : null,
    parameters(spec, list),
    schema ? h('div', {}, h('h3', {}, `Body: ${typeOf(spec, schema)}`), fields(spec, schema)) : null,
    answers(spec, call.responses),
    form(spec, call, list),
  );
}

function page(spec) {
  const calls = Object.entries(spec.paths).flatMap(([path, item]) =>
    METHODS.filter((method) => item[method]).map((method) => ({ ...item[method], path, method })),
  );
  const tags = [...new Set(calls.map((call) => call.tags?.[0] ?? 'calls'))];
  const schemas = Object.entries(spec.components?.schemas ?? {});
  show(
    app,
    h(
      'header',
      {},
      h('h1', {}, `${spec.info.title} API`),
      h('p', {}, spec.info.description ?? ''),
      h('p', { class: 'quiet small' }, `Version ${spec.info.version}. The document: `, h('a', { href: '../openapi.json' }, '/openapi.json')),
      field('token', 'Access token', token, 'Sent with every call below; kept in this page only. seckill token mint --sub alice makes one.'),
    ),
    ...tags.map((tag) =>
      h('section', {}, h('h2', {}, tag), calls.filter((call) => (call.tags?.[0] ?? 'calls') === tag).map((call) => card(spec, call))),
    ),
    h(
      'section',
      {},
      h('h2', {}, 'bodies'),
      schemas.map(([name, schema]) =>
        h('details', { class: 'card' }, h('summary', {}, h('code', {}, name), h('span', { class: 'quiet small' }, schema.description ?? '')), fields(spec, schema)),
      ),
    ),
  );
}

try {
  const answer = await fetch('../openapi.json', { signal: AbortSignal.timeout(DEADLINE_MS) });
  if (!answer.ok) throw new Error(`status ${answer.status}`);
  page(await answer.json());
} catch (error) {
  show(app, h('p', { class: 'note bad', role: 'alert' }, `/openapi.json could not be read: ${error.message}. Reload the page.`));
}
