// Buyers in a real browser register, buy and pay, while kill -9 ends seckill's roles and the shop, and the identity provider
// changes its key. At the end the shop's orders are compared with seckill's, and seckill audits itself.
// `npm test`; starts a stack of its own (ports 3410 to 3412) in a folder of its own and removes it when all is well.
// BUYERS=36 (10 or more), AT_ONCE=3, SHOTS=folder for pictures, CHROMIUM=path, KEEP=1 keeps the folder.
import assert from 'node:assert/strict';
import { execFileSync, spawn, spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import puppeteer from 'puppeteer-core';

const BUYERS = Number(process.env.BUYERS ?? 36);
const AT_ONCE = Number(process.env.AT_ONCE ?? 3);
const STOCK = Math.ceil(BUYERS * 0.6); // so that the last ones come too late
const PAY_WITHIN_S = 25;
const STEP_MS = 90_000;
const KILL_EVERY_MS = 5_000;
const END_MS = 120_000;

const data = mkdtempSync(path.join(tmpdir(), 'seckill-shop-'));
const shots = process.env.SHOTS ?? path.join(data, 'pictures');
mkdirSync(shots, { recursive: true });
const json = (...parts) => JSON.parse(readFileSync(path.join(data, ...parts), 'utf8'));
const log = (words) => console.log(`${new Date().toISOString().slice(11, 19)} ${words}`);

/** Waits for what `check` returns, at most `ms`. */
async function until(what, check, ms = STEP_MS) {
  const end = Date.now() + ms;
  let last;
  for (;;) {
    try {
      const found = await check();
      if (found) return found;
    } catch (error) {
      last = error;
    }
    if (Date.now() > end) throw new Error(`${what}: not within ${ms} ms${last ? `; ${last.message}` : ''}`);
    await pause(250);
  }
}

// ---- the stack

const started = spawn('./start.sh', {
  cwd: import.meta.dirname, stdio: ['ignore', 'inherit', 'inherit'],
  env: {
    ...process.env, SHOP_DATA: data, SHOP_PORT: '3410', IDP_PORT: '3411', SHOP_DB_PORT: '3412',
    STOCK: String(STOCK), PAY_WITHIN_S: String(PAY_WITHIN_S), PAY_GRACE_S: '2',
  },
});
const stackEnded = new Promise((resolve) => started.once('exit', resolve));
const stack = await until('the stack', () => json('stack.json').ready && json('stack.json'), 240_000);
const dev = () => json('seckill', 'dev.json');
const seckill = (...args) => execFileSync(stack.program, ['--data-dir', stack.seckill, ...args], {
  encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'], maxBuffer: 1 << 28,
});

// ---- what is killed meanwhile

const kills = { api: 0, relay: 0, consumer: 0, reconcile: 0, shop: 0 };
let selling = true;
let rotated; // resolves when the issuer signs with the new key
let keyChanged = false;

/** kill -9, then wait until the supervisor has started another one. */
async function kill(name, pids) {
  const pid = pids()[name];
  process.kill(pid, 'SIGKILL');
  kills[name] += 1;
  log(`kill -9 ${name} (${pid})`);
  await until(`another ${name}`, () => pids()[name] !== pid);
}

async function killer() {
  const order = ['consumer', 'relay', 'api', 'reconcile', 'consumer', 'api', 'relay', 'shop'];
  for (let n = 0; selling; n += 1) {
    await pause(KILL_EVERY_MS);
    const name = order[n % order.length];
    // Its own refresh has to bring the new key, not a new process.
    if (name === 'api' && !keyChanged) continue;
    await kill(name, () => (name === 'shop' ? json('stack.json').pids : dev().pids));
  }
}

/** The issuer changes its key as docs/operations.md says: publish, wait until each api process has read it, use. */
async function rotate() {
  const rotation = { before: await keyIds() };
  const published = Date.now();
  const metrics = async () => (await fetch(`${dev().admin}/metrics`)).text();
  const reads = async () => Number(/key_reads_total\{result="changed"\} (\d+)/.exec(await metrics())[1]);
  const before = await reads();
  await keyStep('publish');
  assert.equal((await keyIds()).length, 2);
  await until('api reads the new key', async () => (await reads()) > before, 120_000);
  await keyStep('use');
  rotation.after = await keyIds();
  keyChanged = true;
  log(`the issuer signs with another key since now, ${Date.now() - published} ms after it was published`);
  return rotation;
}

async function keyStep(name) {
  execFileSync(process.execPath, ['idp/keys.mjs', stack.idpKeys, name], { cwd: import.meta.dirname });
  process.kill(json('stack.json').pids.idp, 'SIGHUP');
  const wanted = JSON.parse(readFileSync(stack.idpKeys, 'utf8')).map((key) => key.kid);
  await until('the provider has its keys', async () => (await keyIds()).join() === wanted.join());
}

const keyIds = async () => (await (await fetch(`${stack.idp}/jwks`)).json()).keys.map((key) => key.kid);
const kidOf = (token) => JSON.parse(Buffer.from(token.split('.')[0], 'base64url')).kid;

// ---- buyers

const chromium = process.env.CHROMIUM ?? ['/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome'].find(existsSync);
const browser = await puppeteer.launch({
  executablePath: chromium, args: ['--no-sandbox', '--disable-dev-shm-usage'], protocolTimeout: STEP_MS,
});
const picture = (page, name) => page.screenshot({ path: path.join(shots, `${name}.png`) });
const text = (page, selector) => page.$eval(selector, (element) => element.textContent);

const ready = (page) => page.waitForFunction(() => !document.getElementById('buy').disabled, { timeout: 5_000 });

/** Opens the shop and signs in with a new account. The shop may be dead at any moment: a page that fails is opened again. */
async function register(page, n) {
  await until(`buyer ${n} signs in`, async () => {
    await page.goto(`${stack.shop}/`, { waitUntil: 'load', timeout: 15_000 });
    await page.waitForFunction(() => document.getElementById('who').textContent || !document.getElementById('sign').hidden, { timeout: 10_000 });
    // Signed in, but the shop died before the page had everything: open it again.
    if (await text(page, '#who')) return ready(page);
    await Promise.all([page.waitForNavigation({ timeout: 15_000 }), page.click('#sign')]);
    if (page.url().startsWith(stack.shop)) return false; // the provider remembers the session
    await page.type('input[name=email]', `buyer-${n}@shop.example`);
    await page.type('input[name=password]', `a password of ${n}`);
    if (n === 0) await picture(page, '1-sign-in');
    await Promise.all([page.waitForNavigation({ timeout: 15_000 }), page.click('button[value=register]')]);
    await page.waitForFunction(() => document.getElementById('who').textContent, { timeout: 10_000 });
    return ready(page);
  });
}

/** The words of the shop when the purchase has ended, one way or the other. */
async function buy(page, n) {
  return until(`buyer ${n} buys`, async () => {
    await ready(page);
    await page.click('#buy');
    if (n === 0) await picture(page, '2-buying');
    await page.waitForFunction(() => !document.getElementById('buy').disabled, { timeout: 80_000 });
    const said = await text(page, '#said');
    return said.includes('does not answer') ? undefined : said;
  }, 170_000);
}

const state = (page) => page.$eval('#orders li', (row) => row.dataset.state).catch(() => undefined);
const waitFor = (page, n, wanted) => until(`order of buyer ${n} is ${wanted}`, async () => wanted.includes(await state(page)) && state(page));

/** What buyer n does with the order: most pay, every fifth does not, every seventh is cancelled by the shop after the payment. */
const kind = (n) => (n % 5 === 4 ? 'forgets' : n % 7 === 3 ? 'regrets' : 'pays');

/** Money for units that are on sale again: the shop takes it while it does not know that the order has expired. */
async function lateBuyers() {
  const pages = await Promise.all(['late-1', 'late-2', 'late-3'].map(async (n) => {
    const page = await (await browser.createBrowserContext()).newPage();
    await register(page, n);
    assert.match(await buy(page, n), /^Yours/);
    await waitFor(page, n, ['UNPAID']);
    return page;
  }));
  const requests = await Promise.all(pages.map((page) => page.$eval('#orders li', (row) => row.dataset.request)));
  const { shop } = json('stack.json').pids;
  process.kill(shop, 'SIGSTOP');
  await Promise.all(pages.map((page) => page.$eval('#orders li button', (button) => button.click())));
  await until('late orders expire', () => requests.every((request) => exported().get(request).state === 'EXPIRED'));
  process.kill(shop, 'SIGCONT');
  for (const [n, page] of pages.entries()) {
    log(`late buyer ${n}: ${await waitFor(page, `late-${n}`, ['REFUNDED', 'EXPIRED'])}`);
    await page.browserContext().close();
  }
}

async function buyer(n) {
  // The last ones sign in when the new key signs.
  if (n >= BUYERS * 0.6) await rotated;
  const context = await browser.createBrowserContext();
  const page = await context.newPage();
  const one = { n, kind: kind(n) };
  try {
    await register(page, n);
    one.access = await page.evaluate(() => sessionStorage.getItem('access'));
    one.said = await buy(page, n);
    if (!one.said.startsWith('Yours')) return one;
    await waitFor(page, n, ['UNPAID', 'EXPIRED']);
    one.request = await page.$eval('#orders li', (row) => row.dataset.request);
    if (n === 0) await picture(page, '3-unpaid');
    if (one.kind === 'forgets') {
      await waitFor(page, n, ['EXPIRED']);
      if (n === 4) await picture(page, '5-expired');
      return one;
    }
    // Pressed again while the shop is dead, until the order is not unpaid any more.
    await until(`buyer ${n} pays`, async () => {
      await page.$eval('#orders li button', (button) => button.click()).catch(() => undefined);
      await pause(700);
      return (await state(page)) !== 'UNPAID';
    });
    await waitFor(page, n, ['PAID', 'EXPIRED', 'REFUNDED']);
    if (n === 0) await picture(page, '4-paid');
    if (one.kind === 'regrets') {
      await cancelInShop(one.request);
      await waitFor(page, n, ['REFUNDED']);
      await picture(page, '6-refunded');
    }
    return one;
  } finally {
    one.end = await state(page);
    await context.close();
  }
}

// ---- the shop's own API, as its support uses it

let admin;
async function shopAdmin(query, variables = {}) {
  const call = async (body) => {
    const response = await fetch(`${stack.shop}/admin-api`, {
      method: 'POST', headers: { 'content-type': 'application/json', ...(admin && { authorization: `Bearer ${admin}` }) },
      body: JSON.stringify(body), signal: AbortSignal.timeout(10_000),
    });
    admin ??= response.headers.get('vendure-auth-token');
    const { data: answer, errors } = await response.json();
    if (errors) throw new Error(errors[0].message);
    return answer;
  };
  return until('the shop answers', async () => {
    if (!admin) await call({ query: 'mutation ($p: String!) { login(username: "superadmin", password: $p) { __typename } }', variables: { p: stack.shopAdmin } });
    return call({ query, variables });
  });
}

async function cancelInShop(request) {
  const { orders } = await shopAdmin('query ($r: String!) { orders(options: { filter: { seckillRequest: { eq: $r } } }) { items { id state } } }', { r: request });
  const [{ id, state: before }] = orders.items;
  if (before === 'Cancelled') return;
  const { cancelOrder } = await shopAdmin('mutation ($id: ID!) { cancelOrder(input: { orderId: $id, reason: "the buyer asked" }) { __typename } }', { id });
  assert.equal(cancelOrder.__typename, 'Order');
}

async function ordersOfShop() {
  const all = [];
  for (let skip = 0; ; skip += 100) {
    const { orders } = await shopAdmin(`query ($skip: Int!) { orders(options: { skip: $skip, take: 100 }) { totalItems items {
      state payments { amount state refunds { total state } } customFields { seckillRequest seckillState }
      customer { user { authenticationMethods { strategy } } } } } }`, { skip });
    all.push(...orders.items);
    if (all.length >= orders.totalItems) return new Map(all.map((order) => [order.customFields.seckillRequest, order]));
  }
}

// ---- the run

async function crowd() {
  const [left, done] = [Array.from({ length: BUYERS }, (_, n) => n), []];
  const lane = async () => {
    while (left.length) {
      const one = await buyer(left.shift());
      done.push(one);
      log(`buyer ${one.n} (${one.kind}): ${one.said} ${one.end ?? ''}`);
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, lane));
  return done;
}

function exported() {
  const lines = seckill('order', 'export', '--sale', stack.sale).trim().split('\n').filter(Boolean);
  return new Map(lines.map((line) => JSON.parse(line)).map((order) => [order.request_id, order]));
}

/** Nothing is on its way between the two any more. */
async function quiet() {
  await until('no order waits for its payment', () => [...exported().values()].every((order) => order.state !== 'UNPAID'), END_MS);
  await until('all webhooks are delivered', () => JSON.parse(seckill('webhook', 'list', '--json')).webhooks
    .every((webhook) => webhook.waiting === 0 && webhook.dead === 0), END_MS);
  await until('the shop has no task left', async () => (await shopAdmin('{ seckillTasksWaiting }')).seckillTasksWaiting === 0, END_MS);
  await until('no money has to go back', () => JSON.parse(seckill('order', 'refunds', '--json')).count === 0, END_MS);
}

/** Each order is in both systems, in states that belong together, with the money that belongs to them. */
function compare(there, here) {
  assert.deepEqual([...here.keys()].sort(), [...there.keys()].sort(), 'the same orders in both systems');
  const count = {};
  for (const [request, order] of there) {
    const shop = here.get(request);
    const paid = shop.payments.filter((payment) => payment.state === 'Settled').reduce((sum, payment) => sum + payment.amount, 0);
    const back = shop.payments.flatMap((payment) => payment.refunds).reduce((sum, refund) => sum + refund.total, 0);
    assert.equal(shop.customFields.seckillState, order.state, request);
    assert.equal(shop.state, order.state === 'PAID' ? 'PaymentSettled' : 'Cancelled', request);
    assert.equal(paid - back, order.state === 'PAID' ? order.amount : 0, `${request}: what the shop kept`);
    const label = `${order.state}${back ? ', refunded' : ''}`;
    count[label] = (count[label] ?? 0) + 1;
  }
  return count;
}

let failed = true;
try {
  const began = Date.now();
  await lateBuyers();
  rotated = rotate();
  const [buyers, rotation] = await Promise.all([crowd().finally(() => { selling = false; }), rotated, killer()]);

  const usedKeys = buyers.map((one) => kidOf(one.access)).reduce((all, kid) => ({ ...all, [kid]: (all[kid] ?? 0) + 1 }), {});
  log(`access tokens by key: ${JSON.stringify(usedKeys)}`);
  assert.equal(rotation.before[0], rotation.after[1], 'the old key is still published, behind the new one');
  // A token of the old key is good until its end.
  const old = buyers.find((one) => kidOf(one.access) === rotation.before[0]);
  assert.equal((await fetch(`${dev().api}/v1/orders`, { headers: { authorization: `Bearer ${old.access}` } })).status, 200);
  assert.ok(usedKeys[rotation.after[0]] > 0, 'somebody bought with the new key');

  await quiet();
  const there = exported();
  const count = compare(there, await ordersOfShop());
  const bought = buyers.filter((one) => one.request).map((one) => one.request);
  assert.equal(new Set(bought).size, bought.length, 'each request is of one buyer');
  for (const request of bought) assert.ok(there.has(request), `${request} was shown to its buyer`);
  assert.ok((count.PAID ?? 0) <= STOCK, 'not more than there are');
  for (const label of ['PAID', 'EXPIRED', 'CANCELLED, refunded', 'EXPIRED, refunded']) assert.ok(count[label] > 0, `the run has ${label}`);
  assert.ok(buyers.some((one) => one.said === 'Sold out'), 'some came too late');
  for (const [name, times] of Object.entries(kills)) assert.ok(times > 0, `${name} was killed`);

  const audit = spawnSync(stack.program, ['--data-dir', stack.seckill, 'audit', '--now'], { encoding: 'utf8' });
  console.log(audit.stdout);
  assert.equal(audit.status, 0, 'the audit is consistent');
  log(`${BUYERS + 3} buyers, ${STOCK} units, ${there.size} orders: ${JSON.stringify(count)}; kill -9: ${JSON.stringify(kills)}; `
    + `${Math.round((Date.now() - began) / 1000)} s. Both systems have the same orders.`);
  failed = false;
} finally {
  selling = false;
  await browser.close();
  started.kill('SIGINT');
  await stackEnded;
  if (!failed && !process.env.KEEP) rmSync(data, { recursive: true, force: true });
  else log(`data and logs: ${data}`);
}
