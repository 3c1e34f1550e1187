// Signs a pass as a shop does: node sign_pass.mjs SECRET SUB SALE TIER. Prints the text of the header Seckill-Pass.
//
// SECRET is the first of passes.secrets, 32 bytes or more. With a library for JWTs, e.g. jose, it is one call:
// new SignJWT(claims).setProtectedHeader({ alg: 'HS256' }).sign(key).
import { createHmac, randomUUID } from 'node:crypto';

const part = (value) => Buffer.from(JSON.stringify(value)).toString('base64url');

export function signPass(secret, claims) {
  const all = { exp: Math.floor(Date.now() / 1000) + 3600, jti: randomUUID(), ...claims };
  const signed = `${part({ alg: 'HS256', typ: 'JWT' })}.${part(all)}`;
  return `${signed}.${createHmac('sha256', secret).update(signed).digest('base64url')}`;
}

const [secret, sub, sale, tier] = process.argv.slice(2);
console.log(signPass(secret, { sub, sale, tier }));
