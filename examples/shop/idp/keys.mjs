// The provider's signing keys: `node idp/keys.mjs FILE publish|use|retire`, the three steps of a change without an outage.
// The first key of the file signs, all of them are published at /jwks. After a step send SIGHUP to the provider.
import { existsSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { pathToFileURL } from 'node:url';
import { calculateJwkThumbprint, exportJWK, generateKeyPair } from 'jose';

export const ALGORITHM = 'ES256';

export async function newKey() {
  const { privateKey } = await generateKeyPair(ALGORITHM, { extractable: true });
  const jwk = await exportJWK(privateKey);
  return { ...jwk, alg: ALGORITHM, use: 'sig', kid: (await calculateJwkThumbprint(jwk)).slice(0, 12) };
}

export const readKeys = (file) => JSON.parse(readFileSync(file, 'utf8'));

// Over a rename, so that no reader sees half of it.
export function writeKeys(file, keys) {
  writeFileSync(`${file}.new`, JSON.stringify(keys, null, 1), { mode: 0o600 });
  renameSync(`${file}.new`, file);
}

const steps = {
  /** A new key beside the old one. Everybody who verifies has to have read it before it signs. */
  publish: async (keys) => [...keys, await newKey()],
  /** The newest key signs. Tokens of the old one stay good: it is still published. */
  use: async (keys) => [keys.at(-1), ...keys.slice(0, -1)],
  /** Only the key that signs is left: when the last token of the old ones has expired. */
  retire: async (keys) => keys.slice(0, 1),
};

export async function step(file, name) {
  const keys = existsSync(file) ? readKeys(file) : [await newKey()];
  writeKeys(file, name ? await steps[name](keys) : keys);
}

if (import.meta.url === pathToFileURL(process.argv[1]).href) {
  const [file, name] = process.argv.slice(2);
  if (!(name in steps)) throw new Error(`step ${name}: publish, use or retire`);
  await step(file, name);
}
