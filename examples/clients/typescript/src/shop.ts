// A shop: signs a buyer in, finds a sale, buys, waits for the decision, reports the payment, cancels the order, sends the money back.
//   node dist/shop.js DEV_JSON BUYER       DEV_JSON: .seckill/dev.json of `seckill dev`
import { readFileSync } from 'node:fs';
import { SignJWT } from 'jose';
import createClient from 'openapi-fetch';
import type { paths as Admin } from './generated/admin';
import type { components, paths as Public } from './generated/public';

type Problem = components['schemas']['ProblemBody'];
const [file, sub] = process.argv.slice(2);
const dev = JSON.parse(readFileSync(file ?? '.seckill/dev.json', 'utf8'));
const claims = new SignJWT({ sub: sub ?? 'alice', iss: 'seckill', aud: 'seckill' }).setExpirationTime('1h');
const login = await claims.setProtectedHeader({ alg: 'HS256' }).sign(Buffer.from(dev.jwt_secret));
const timed = (request: Request) => fetch(request, { signal: AbortSignal.timeout(30_000) });
const client = <Paths extends {}>(baseUrl: string, token: string) =>
  createClient<Paths>({ baseUrl, fetch: timed, headers: { Authorization: `Bearer ${token}` } });
function answered<T>({ data, error }: { data?: T; error?: Problem }): T {
  if (data === undefined) throw new Error(`${error?.code}: ${error?.detail ?? error?.title}`);
  return data;
}

const [buyer, shop] = [client<Public>(dev.api, login), client<Admin>(dev.admin, dev.admin_token)];
const { sales } = answered(await buyer.GET('/v1/sales'));
const sells = sales.filter((sale) => sale.state === 'READY' && sale.pay_within_s && !sale.token_required && !sale.needs);
const sale = sells.sort((a, b) => (b.remaining ?? 0) - (a.remaining ?? 0))[0];
if (!sale) throw new Error('no sale sells now, for money, to everybody');
const sale_id = sale.sale_id;
const bought = await buyer.POST('/v1/sales/{sale_id}/orders', { params: { path: { sale_id } }, body: { quantity: 1 } });
const request_id = answered(bought).request_id;
const wait = { params: { path: { sale_id, request_id }, query: { wait: 10 } } };
let status = answered(await buyer.GET('/v1/sales/{sale_id}/orders/{request_id}', wait));
while (status.status === 'QUEUED') status = answered(await buyer.GET('/v1/sales/{sale_id}/orders/{request_id}', wait));
if (!status.order) throw new Error(`${status.status}: ${status.reason}`);
const { amount, currency } = status.order;
const [params, payment_id] = [{ path: { request_id } }, `typescript:${request_id}`];
const money = { params, body: { payment_id, amount, currency } };
const paid = answered(await shop.POST('/admin/v1/orders/{request_id}/paid', money));
const cancel = { params, body: { reason: 'the buyer sent it back' } };
const cancelled = answered(await shop.POST('/admin/v1/orders/{request_id}/cancel', cancel));
const refund = { params, body: { payment_id } };
const refunded = answered(await shop.POST('/admin/v1/orders/{request_id}/refunded', refund));
const states = [status.order.state, paid.order?.state, cancelled.order.state, refunded.payment.state];
console.log(JSON.stringify({ sale_id, request_id, payment_id, states }));
