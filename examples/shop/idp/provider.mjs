// The identity provider: customers register and sign in here, and get an ID token for the shop and an access token for
// seckill (a JWT, signed with a key of /jwks). A real shop has Keycloak, Auth0 or its own; what matters is in `resource`.
import { createServer } from 'node:http';
import { readFileSync } from 'node:fs';
import Provider from 'oidc-provider';
import { ALGORITHM, readKeys } from './keys.mjs';
import { Adapter, emailOf, prepare, register, signIn } from './store.mjs';

const { IDP_URL, IDP_KEYS, IDP_COOKIE_SECRET, SHOP_URL } = process.env;
const ACCESS_TOKEN_S = Number(process.env.IDP_ACCESS_TOKEN_S ?? 3600);
const BODY_MAX = 4096;

// The API that access tokens are for. seckill compares `aud` with auth.audience, `iss` with auth.issuer, and takes `sub` as
// the buyer.
const resource = {
  scope: 'buy',
  audience: 'seckill',
  accessTokenTTL: ACCESS_TOKEN_S,
  accessTokenFormat: 'jwt',
  jwt: { sign: { alg: ALGORITHM } },
};

function configuration() {
  return {
    adapter: Adapter,
    jwks: { keys: readKeys(IDP_KEYS) },
    cookies: { keys: [IDP_COOKIE_SECRET] },
    clients: [{
      client_id: 'shop',
      token_endpoint_auth_method: 'none', // the page itself, with PKCE
      grant_types: ['authorization_code'],
      response_types: ['code'],
      redirect_uris: [`${SHOP_URL}/`],
      id_token_signed_response_alg: ALGORITHM,
    }],
    clientBasedCORS: (_ctx, origin) => origin === SHOP_URL,
    claims: { openid: ['sub'], email: ['email'] },
    // The shop reads the address from the ID token instead of asking /me for it.
    conformIdTokenClaims: false,
    findAccount: async (_ctx, id) => {
      const email = await emailOf(id);
      return email && { accountId: id, claims: async () => ({ sub: id, email }) };
    },
    features: {
      devInteractions: { enabled: false },
      resourceIndicators: {
        enabled: true,
        defaultResource: () => 'urn:example:seckill',
        useGrantedResource: () => true,
        getResourceServerInfo: () => resource,
      },
    },
    interactions: { url: (_ctx, interaction) => `/sign-in/${interaction.uid}` },
    // The shop's own client needs no page that asks for consent: who signs in has it.
    loadExistingGrant: async (ctx) => {
      const { client, session, provider } = ctx.oidc;
      const known = session.grantIdFor(client.clientId);
      if (known) return provider.Grant.find(known);
      const grant = new provider.Grant({ clientId: client.clientId, accountId: session.accountId });
      grant.addOIDCScope('openid email');
      grant.addResourceScope('urn:example:seckill', 'buy');
      await grant.save();
      return grant;
    },
    ttl: { AccessToken: ACCESS_TOKEN_S, IdToken: ACCESS_TOKEN_S, Grant: 86_400, Session: 86_400, Interaction: 900 },
    renderError: async (ctx, out) => { ctx.type = 'text'; ctx.body = `${out.error}: ${out.error_description}`; },
  };
}

const escape = (text) => String(text).replace(/[&<>"']/g, (c) => `&#${c.charCodeAt(0)};`);
const page = readFileSync(new URL('./sign-in.html', import.meta.url), 'utf8');

function show(response, status, error, email = '') {
  response.writeHead(status, { 'content-type': 'text/html; charset=utf-8', 'cache-control': 'no-store' });
  response.end(page.replace('{error}', escape(error)).replace('{email}', escape(email)));
}

async function form(request) {
  let text = '';
  for await (const part of request) {
    text += part;
    if (text.length > BODY_MAX) throw new Error('the form is too long');
  }
  return Object.fromEntries(new URLSearchParams(text));
}

async function interact(provider, request, response) {
  await provider.interactionDetails(request, response); // fails without the cookie of this sign-in
  if (request.method !== 'POST') return show(response, 200, '');
  const { email = '', password = '', action } = await form(request);
  if (!/^[^@\s]{1,64}@[^@\s]{1,120}$/.test(email)) return show(response, 422, 'This is no e-mail address.', email);
  if (password.length < 8) return show(response, 422, 'A password has 8 characters or more.', email);
  const accountId = action === 'register' ? await register(email, password) : await signIn(email, password);
  if (accountId) return provider.interactionFinished(request, response, { login: { accountId } });
  const error = action === 'register' ? 'There is an account with this address.' : 'Address or password is wrong.';
  return show(response, action === 'register' ? 409 : 401, error, email);
}

await prepare();
let provider;
let answer;
// oidc-provider takes its keys once. Another provider on the same tables goes on with the same sessions.
function read() {
  provider = new Provider(IDP_URL, configuration());
  answer = provider.callback();
}
read();
process.on('SIGHUP', () => {
  try { read(); } catch (error) { console.error('the keys stay as they are:', error.message); }
});

createServer((request, response) => {
  if (!request.url.startsWith('/sign-in/')) return answer(request, response);
  return interact(provider, request, response).catch((error) => {
    console.error('sign-in:', error.message);
    show(response, 400, 'This sign-in is over. Go back to the shop and begin again.');
  });
}).listen(Number(new URL(IDP_URL).port), '127.0.0.1', () => console.log(`identity provider: ${IDP_URL}`));
