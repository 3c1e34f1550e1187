// Starts and watches the processes of the example: the shop's database, the identity provider, `seckill dev --split`, the shop.
// One that dies is started again with what it had. stack.json in the data folder says where everything is.
import { execFileSync, spawn } from 'node:child_process';
import { createHash, randomBytes } from 'node:crypto';
import { existsSync, mkdirSync, openSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import mysql from 'mysql2/promise';
import { step } from './idp/keys.mjs';

const env = process.env;
const here = import.meta.dirname;
const data = path.resolve(env.SHOP_DATA ?? path.join(here, 'data'));
const at = (...parts) => path.join(data, ...parts);
const SALE = 'phone-one';
const START_MS = 180_000;

for (const folder of ['logs', 'database', 'database/tmp']) mkdirSync(at(folder), { recursive: true });

// Made up once. Beside the data, for this user only: in a real system they are in a vault.
function secrets() {
  const file = at('secrets.json');
  if (!existsSync(file)) {
    const made = {
      shopCookie: randomBytes(32).toString('hex'), idpCookie: randomBytes(32).toString('hex'),
      shopAdmin: randomBytes(16).toString('hex'), seckillToken: randomBytes(32).toString('hex'),
      webhook: `whsec_${randomBytes(32).toString('base64')}`,
    };
    writeFileSync(file, JSON.stringify(made, null, 1), { mode: 0o600 });
  }
  return JSON.parse(readFileSync(file, 'utf8'));
}

const port = (name, otherwise) => Number(env[name] ?? otherwise);
const databasePort = port('SHOP_DB_PORT', 3402);
const shopUrl = `http://127.0.0.1:${port('SHOP_PORT', 3400)}`;
const idpUrl = `http://127.0.0.1:${port('IDP_PORT', 3401)}`;
const database = (name) => `mysql://root@127.0.0.1:${databasePort}/${name}`;
const secret = secrets();
const stack = { shop: shopUrl, idp: idpUrl, sale: SALE, seckill: at('seckill'), program: path.resolve(env.SECKILL), pids: {} };

// Two of them on one folder would take each other's ports and data.
function refuseSecond() {
  if (!existsSync(at('stack.json'))) return;
  const alive = (pid) => { try { return process.kill(pid, 0); } catch { return false; } };
  const { supervisor, pids } = JSON.parse(readFileSync(at('stack.json'), 'utf8'));
  const left = Object.values({ supervisor, ...pids }).filter(alive);
  if (!left.length) return;
  console.error(`it runs already on ${data}, or did not end well. Stop it first: kill ${left.join(' ')}`);
  process.exit(1);
}
refuseSecond();
stack.supervisor = process.pid;

function save() {
  writeFileSync(at('stack.json.new'), JSON.stringify({ ...stack, shopAdmin: secret.shopAdmin, idpKeys: at('keys.json') }, null, 1));
  renameSync(at('stack.json.new'), at('stack.json'));
}

let stopping = false;
const running = [];

/** Starts a process and starts it again when it dies. Its log is logs/NAME.log. */
function watch(name, command, args, environment = {}, options = {}) {
  const log = openSync(at('logs', `${name}.log`), 'a');
  const one = { name, child: undefined };
  const start = () => {
    one.child = spawn(command, args, {
      cwd: here, env: { ...env, ...environment }, stdio: ['ignore', log, log],
      // Ctrl-C of the terminal reaches this process only, which then stops the others in their order.
      detached: true, ...options,
    });
    stack.pids[name] = one.child.pid;
    save();
    one.ended = new Promise((resolve) => one.child.once('exit', (code, signal) => {
      if (stopping) return resolve();
      console.error(`${name} ended (${signal ?? code}), see logs/${name}.log: started again`);
      setTimeout(() => (stopping ? resolve() : start()), 500);
    }));
    one.child.once('error', (error) => console.error(`${name}: ${error.message}`));
  };
  start();
  running.unshift(one);
}

async function stop() {
  if (stopping) return;
  stopping = true;
  // Backwards: the shop first, its database last.
  for (const { child, ended } of running) {
    child.kill('SIGTERM');
    await Promise.race([ended, new Promise((resolve) => child.once('exit', resolve)), pause(30_000)]);
  }
  rmSync(at('stack.json'), { force: true });
  process.exit(process.exitCode ?? 0);
}
process.on('SIGINT', stop);
process.on('SIGTERM', stop);

async function until(what, check) {
  const end = Date.now() + START_MS;
  for (;;) {
    const found = await Promise.resolve().then(check).catch(() => undefined);
    if (found) return found;
    if (Date.now() > end) throw new Error(`${what} did not start: see ${at('logs')}`);
    await pause(300);
  }
}

const answers = (url) => until(url, async () => (await fetch(url, { signal: AbortSignal.timeout(2_000) })).ok);

async function startDatabase() {
  const user = process.getuid() === 0 ? ['--user=root'] : [];
  if (!existsSync(at('database/data'))) {
    rmSync(at('database/new'), { recursive: true, force: true });
    const options = ['--no-defaults', '--auth-root-authentication-method=normal', '--skip-test-db', '--skip-name-resolve'];
    execFileSync('mariadb-install-db', [...options, `--datadir=./new`, ...user], { cwd: at('database'), stdio: 'ignore' });
    renameSync(at('database/new'), at('database/data'));
  }
  watch('database', 'mariadbd', [
    '--no-defaults', `--datadir=${at('database/data')}`, `--tmpdir=${at('database/tmp')}`, `--socket=${at('database/tmp/s')}`,
    `--pid-file=${at('database/pid')}`, `--port=${databasePort}`, '--bind-address=127.0.0.1', '--skip-name-resolve',
    '--character-set-server=utf8mb4', ...user,
  ]);
  const connection = await until('the shop\'s database', () => mysql.createConnection(database('')));
  for (const name of ['shop', 'idp']) await connection.query(`CREATE DATABASE IF NOT EXISTS ${name}`);
  await connection.end();
}

async function startProvider() {
  await step(at('keys.json'));
  watch('idp', process.execPath, ['idp/provider.mjs'], {
    IDP_URL: idpUrl, IDP_KEYS: at('keys.json'), IDP_DATABASE_URL: database('idp'), IDP_COOKIE_SECRET: secret.idpCookie,
    SHOP_URL: shopUrl,
  });
  await answers(`${idpUrl}/jwks`);
}

/** What seckill has to know of this shop: who signs its customers' tokens, which page buys, where events go, who reports. */
function seckillSettings() {
  const hash = createHash('sha256').update(secret.seckillToken).digest('hex');
  return `[auth]
algorithm = "ES256"
jwks_url = "${idpUrl}/jwks"
jwks_refresh_s = 60
issuer = "${idpUrl}"
audience = "seckill"

[http]
cors_origins = ["${shopUrl}"]

[[admin.tokens]]
name = "shop"
role = "money"
sha256 = "${hash}"

[[webhooks]]
name = "shop"
url = "${shopUrl}/hooks/seckill"
secrets = ["${secret.webhook}"]
events = ["order.confirmed", "order.failed", "order.paid", "order.expired", "order.cancelled", "order.refund_needed"]

# Customers wait for their orders: a restart of the shop must not cost them the five minutes of the second default pause.
[webhook_delivery]
retry_ms = [500, 1000, 2000, 4000, 8000, 15000, 30000, 60000, 300000, 1800000, 7200000, 36000000, 86400000, 86400000]
`;
}

const seckill = (...args) => execFileSync(stack.program, ['--data-dir', stack.seckill, ...args], { encoding: 'utf8' });

async function startSeckill() {
  writeFileSync(at('seckill.toml'), seckillSettings(), { mode: 0o600 });
  rmSync(path.join(stack.seckill, 'dev.json'), { force: true });
  watch('seckill', stack.program, [
    '--config', at('seckill.toml'), '--data-dir', stack.seckill, 'dev', '--split', '--keep', '--no-demo',
  ]);
  const dev = await until('seckill', () => JSON.parse(readFileSync(path.join(stack.seckill, 'dev.json'), 'utf8')));
  await answers(`${dev.api}/v1/sales`);
  return dev;
}

/** The sale of the shop's product, once: a second import of the same file changes nothing. */
async function createSale(price) {
  const file = at('sale.json');
  if (!existsSync(file)) {
    const [now, year] = [Date.now(), 365 * 86_400_000];
    writeFileSync(file, JSON.stringify({
      sale_id: SALE, product_id: 'phone-one', title: 'Phone One, first edition', stock: port('STOCK', 100), limit: 1,
      price_cents: price, currency: 'CNY', token_required: true, pay_within_s: port('PAY_WITHIN_S', 120),
      pay_grace_s: port('PAY_GRACE_S', 10), starts_at: new Date(now).toISOString(), ends_at: new Date(now + year).toISOString(),
    }));
  }
  seckill('sale', 'import', '--file', file, '--warm');
}

async function startShop(dev) {
  watch('shop', process.execPath, ['--enable-source-maps', 'dist/main.js'], {
    SHOP_URL: shopUrl, SHOP_DATABASE_URL: database('shop'), SHOP_COOKIE_SECRET: secret.shopCookie,
    SHOP_ADMIN_PASSWORD: secret.shopAdmin, IDP_URL: idpUrl, SECKILL_API: dev.api, SECKILL_ADMIN: dev.admin,
    SECKILL_TOKEN: secret.seckillToken, SECKILL_WEBHOOK_SECRET: secret.webhook, SECKILL_SALE: SALE,
    // Vendure's: an example calls no server of others.
    VENDURE_DISABLE_TELEMETRY: 'true',
  });
  await answers(`${shopUrl}/settings.json`);
}

async function priceInShop() {
  const query = '{ products { items { variants { sku priceWithTax } } } }';
  const response = await fetch(`${shopUrl}/shop-api`, {
    method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify({ query }),
  });
  const { products } = (await response.json()).data;
  return products.items.flatMap((product) => product.variants).find((variant) => variant.sku === 'phone-one').priceWithTax;
}

try {
  await startDatabase();
  await startProvider();
  const dev = await startSeckill();
  await startShop(dev);
  await createSale(await priceInShop());
  Object.assign(stack, { api: dev.api, admin: dev.admin, ready: true });
  save();
  console.log(`
  shop               ${shopUrl}/   (create an account there: any address, 8 characters)
  shop's orders      ${shopUrl}/admin-api   (GraphQL; superadmin, ${secret.shopAdmin})
  identity provider  ${idpUrl}
  seckill            ${dev.api}, console ${dev.admin}/console/ (token: ${dev.admin_token})
  logs               ${at('logs')}

  Ctrl-C stops everything.`);
} catch (error) {
  console.error(error.message);
  process.exitCode = 1;
  await stop();
}
