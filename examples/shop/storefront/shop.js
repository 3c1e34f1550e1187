// The page of the sale: sign in, buy through seckill, pay in the shop.
import { comeBack, goToSignIn } from './sign-in.js';

const $ = (id) => document.getElementById(id);
const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
const money = (amount, currency) => new Intl.NumberFormat('en', { style: 'currency', currency }).format(amount / 100);
const POLL_MS = 1_500;

const settings = await (await fetch('/settings.json')).json();
const saleUrl = `${settings.seckillApi}/v1/sales/${settings.sale}`;

/** The shop's own API. */
async function shop(query, variables = {}) {
  const response = await fetch('/shop-api', {
    method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify({ query, variables }),
  });
  const { data, errors } = await response.json();
  if (errors) throw new Error(errors[0].message);
  return data;
}

/** A call of seckill. What can be repeated is: no answer, 429, 503 and 504, until `tries` are spent. */
async function seckill(path, options = {}, tries = 40) {
  for (let left = tries; ; left -= 1) {
    const access = sessionStorage.getItem('access');
    const headers = { ...(access && { authorization: `Bearer ${access}` }), ...options.headers };
    const response = await fetch(`${saleUrl}${path}`, { ...options, headers }).catch(() => undefined);
    if (response && ![429, 502, 503, 504].includes(response.status)) return response;
    if (left === 0) throw new Error('The sale does not answer. Your purchase goes on when you press the button again.');
    await pause(1000 * Number(response?.headers.get('retry-after') ?? 1));
  }
}

async function buy() {
  $('buy').disabled = true;
  try {
    // One purchase, however often it is sent: also after a reload, since the token outlives the page.
    let token = sessionStorage.getItem('purchase');
    if (!token) {
      const issued = await seckill('/tokens', { method: 'POST' });
      if (!issued.ok) return said((await issued.json()).title);
      ({ token } = await issued.json());
      sessionStorage.setItem('purchase', token);
    }
    said('Buying…');
    const bought = await seckill('/orders', {
      method: 'POST', headers: { 'idempotency-key': token, 'content-type': 'application/json' }, body: '{"quantity":1}',
    });
    sessionStorage.removeItem('purchase');
    const answer = await bought.json();
    if (bought.status !== 202) return said(answer.title);
    said('You have one. The order is being written…');
    const outcome = await follow(answer.request_id);
    if (outcome.status === 'FAILED') return said(`It became no order: ${outcome.reason}`);
    said('Yours, if you pay in time.');
    await showOrders();
  } catch (error) {
    said(error.message);
  } finally {
    $('buy').disabled = false;
  }
}

async function follow(request) {
  for (;;) {
    const response = await seckill(`/orders/${request}?wait=10`);
    const outcome = await response.json();
    if (!response.ok) throw new Error(outcome.title);
    if (outcome.status !== 'QUEUED') return outcome;
  }
}

const said = (words) => { $('said').textContent = words; };
const FIELDS = 'code state totalWithTax currencyCode payments { amount refunds { state } } customFields { seckillRequest seckillState }';

async function showOrders() {
  const { seckillOrders } = await shop(`{ seckillOrders { ${FIELDS} } }`);
  $('orders').replaceChildren(...seckillOrders.map(row));
}

function row(order) {
  const item = document.createElement('li');
  const { seckillRequest: request, seckillState } = order.customFields;
  const refunded = order.payments?.some((payment) => payment.refunds.length > 0);
  const label = refunded ? 'REFUNDED' : order.state === 'PaymentSettled' && seckillState === 'UNPAID' ? 'PAYING' : seckillState;
  item.dataset.state = label;
  item.dataset.request = request;
  item.append(order.code, Object.assign(document.createElement('b'), { textContent: label }));
  if (order.state === 'ArrangingPayment' && seckillState === 'UNPAID') {
    const pay = document.createElement('button');
    pay.textContent = `Pay ${money(order.totalWithTax, order.currencyCode)}`;
    pay.onclick = async () => {
      pay.disabled = true;
      const paid = shop('mutation ($r: String!) { paySeckillOrder(request: $r) { state } }', { r: request });
      await paid.catch((error) => said(error.message));
      await showOrders();
    };
    item.append(pay);
  }
  return item;
}

async function showSale() {
  const sale = await (await seckill('', {}, 0)).json();
  $('name').textContent = sale.title;
  $('price').textContent = money(sale.price_cents, sale.currency);
  $('left').textContent = sale.remaining > 0 ? `${sale.remaining} left` : 'sold out';
}

async function start() {
  const idToken = await comeBack(settings.idpUrl);
  if (idToken) {
    const { authenticate } = await shop(`mutation ($t: String!) { authenticate(input: { oidc: { token: $t } }) {
      __typename ... on ErrorResult { message } } }`, { t: idToken });
    if (authenticate.message) throw new Error(authenticate.message);
  }
  const { activeCustomer } = await shop('{ activeCustomer { emailAddress } }');
  $('who').textContent = activeCustomer?.emailAddress ?? '';
  $('sign').hidden = Boolean(activeCustomer);
  $('sign').textContent = 'Sign in';
  $('sign').onclick = () => goToSignIn(settings.idpUrl);
  $('buy').disabled = !(activeCustomer && sessionStorage.getItem('access'));
  $('buy').onclick = buy;
  if (activeCustomer) await showOrders();
}

await start().catch((error) => said(error.message));
for (;;) {
  await showSale().catch(() => undefined);
  if ($('who').textContent) await showOrders().catch(() => undefined);
  await pause(POLL_MS);
}
