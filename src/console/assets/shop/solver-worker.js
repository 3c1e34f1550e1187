// Solves a proof of work beside the page: decimal digits behind `nonce:` so that the SHA-256 of the whole text begins with zero bits.
// SHA-256 by hand (FIPS 180-4): the browser's own is one message to another thread for each hash. All of the text but its end is
// hashed once.

const TRIES_PER_REPORT = 100_000;
const DIGITS = 12;

/** The first 32 bits of the fractional part of the n-th root of a prime. */
const fraction = (prime, n) => Math.floor((prime ** (1 / n) % 1) * 2 ** 32);
const primes = [];
for (let n = 2; primes.length < 64; n += 1) if (primes.every((prime) => n % prime !== 0)) primes.push(n);
const K = Int32Array.from(primes, (prime) => fraction(prime, 3));
const START = Int32Array.from(primes.slice(0, 8), (prime) => fraction(prime, 2));
const words = new Int32Array(64);

/** Mixes the 64 bytes of `block` from `at` into `hash`. */
function mix(hash, block, at) {
  for (let i = 0; i < 16; i += 1) {
    const j = at + 4 * i;
    words[i] = (block[j] << 24) | (block[j + 1] << 16) | (block[j + 2] << 8) | block[j + 3];
  }
  for (let i = 16; i < 64; i += 1) {
    const [x, y] = [words[i - 15], words[i - 2]];
    const s0 = ((x >>> 7) | (x << 25)) ^ ((x >>> 18) | (x << 14)) ^ (x >>> 3);
    const s1 = ((y >>> 17) | (y << 15)) ^ ((y >>> 19) | (y << 13)) ^ (y >>> 10);
    words[i] = (words[i - 16] + s0 + words[i - 7] + s1) | 0;
  }
  let [a, b, c, d, e, f, g, h] = hash;
  for (let i = 0; i < 64; i += 1) {
    const s1 = ((e >>> 6) | (e << 26)) ^ ((e >>> 11) | (e << 21)) ^ ((e >>> 25) | (e << 7));
    const t1 = (h + s1 + ((e & f) ^ (~e & g)) + K[i] + words[i]) | 0;
    const s0 = ((a >>> 2) | (a << 30)) ^ ((a >>> 13) | (a << 19)) ^ ((a >>> 22) | (a << 10));
    const t2 = (s0 + ((a & b) ^ (a & c) ^ (b & c))) | 0;
    h = g; g = f; f = e; e = (d + t1) | 0; d = c; c = b; b = a; a = (t1 + t2) | 0;
  }
  hash[0] += a; hash[1] += b; hash[2] += c; hash[3] += d; hash[4] += e; hash[5] += f; hash[6] += g; hash[7] += h;
}

/** The end of the text with its padding, and where its digits begin in it. */
function lastBlocks(rest, bytes) {
  const blocks = new Uint8Array(64 * Math.ceil((rest.length + DIGITS + 9) / 64));
  blocks.set(rest);
  blocks.fill(0x30, rest.length, rest.length + DIGITS);
  blocks[rest.length + DIGITS] = 0x80;
  new DataView(blocks.buffer).setUint32(blocks.length - 4, 8 * bytes);
  return { blocks, from: rest.length };
}

/** Solves; `report(tries)` now and then. The text to send. */
function solve(nonce, bits, report) {
  const text = `${nonce}:`;
  const prefix = new TextEncoder().encode(text);
  const whole = prefix.length - (prefix.length % 64);
  const middle = START.slice();
  for (let at = 0; at < whole; at += 64) mix(middle, prefix, at);
  const { blocks, from } = lastBlocks(prefix.subarray(whole), prefix.length + DIGITS);
  const hash = new Int32Array(8);
  for (let tries = 1; ; tries += 1) {
    hash.set(middle);
    for (let at = 0; at < blocks.length; at += 64) mix(hash, blocks, at);
    // At most 24 bits are asked for: they are in the first word.
    if (Math.clz32(hash[0]) >= bits) return text + String.fromCharCode(...blocks.subarray(from, from + DIGITS));
    if (tries % TRIES_PER_REPORT === 0) report(tries);
    let at = from + DIGITS - 1;
    while (blocks[at] === 0x39) blocks[at--] = 0x30;
    blocks[at] += 1;
  }
}

addEventListener('message', ({ data: { nonce, bits } }) => {
  const solution = solve(nonce, bits, (tries) => postMessage({ tries }));
  postMessage({ solution });
});
