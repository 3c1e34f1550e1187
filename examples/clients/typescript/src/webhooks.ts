// A receiver of webhooks: node dist/webhooks.js SECRET [PORT]. It prints its address, then each event that it takes. A call that is not
// signed with the secret, that was changed on the way or that is older than five minutes gets 400.
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Webhook } from 'standardwebhooks';
import type { WebhookCall } from './generated/events/WebhookCall';

const [secret, port] = process.argv.slice(2);
const webhook = new Webhook(secret ?? '');

/** What a shop does with an event; the type of `data` follows from `type`. */
function take(call: WebhookCall): string {
  switch (call.type) {
    case 'order.paid':
      return `${call.type} ${call.data.rid}: ${call.data.amount} ${call.data.currency}`;
    case 'order.refund_needed':
      return `${call.type} ${call.data.rid}: ${call.data.payment_id}`;
    case 'sale.sold_out':
      return `${call.type} ${call.data.sale_id}`;
    default:
      return call.type;
  }
}

const server = createServer(async (request, response) => {
  const parts: Buffer[] = [];
  for await (const part of request) parts.push(part);
  const header = (name: string) => String(request.headers[name] ?? '');
  const names = ['webhook-id', 'webhook-timestamp', 'webhook-signature'];
  try {
    // The bytes as they came: JSON that was read and written again has another signature.
    const headers = Object.fromEntries(names.map((name) => [name, header(name)]));
    const call = webhook.verify(Buffer.concat(parts).toString('utf8'), headers) as WebhookCall;
    console.log(take(call));
    response.writeHead(204).end();
  } catch (error) {
    console.log(`refused: ${error instanceof Error ? error.message : error}`);
    response.writeHead(400).end();
  }
});
await once(server.listen(Number(port ?? 0), '127.0.0.1'), 'listening');
console.log(`http://127.0.0.1:${(server.address() as AddressInfo).port}/`);
