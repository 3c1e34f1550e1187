// What the identity provider remembers, in two tables of its own database: accounts, and the artifacts of oidc-provider
// (sessions, codes, grants). A restart, also by kill -9, signs no customer out.
import { randomBytes, scrypt, timingSafeEqual } from 'node:crypto';
import { promisify } from 'node:util';
import mysql from 'mysql2/promise';

const hash = promisify(scrypt);
const KEY_BYTES = 32;

export const pool = mysql.createPool({ uri: process.env.IDP_DATABASE_URL, connectionLimit: 8 });

export async function prepare() {
  await pool.query(`CREATE TABLE IF NOT EXISTS accounts (
    id VARCHAR(40) PRIMARY KEY, email VARCHAR(190) NOT NULL UNIQUE, salt BINARY(16) NOT NULL, hash BINARY(32) NOT NULL)`);
  await pool.query(`CREATE TABLE IF NOT EXISTS artifacts (
    model VARCHAR(40) NOT NULL, id VARCHAR(190) NOT NULL, grant_id VARCHAR(190), uid VARCHAR(190), payload JSON NOT NULL,
    consumed_at BIGINT, expires_at BIGINT, PRIMARY KEY (model, id), KEY (grant_id), KEY (uid))`);
}

/** The account's id, which is the buyer's id everywhere; undefined when the password is wrong. */
export async function signIn(email, password) {
  const [[row]] = await pool.query('SELECT id, salt, hash FROM accounts WHERE email = ?', [email]);
  if (!row) return undefined;
  return timingSafeEqual(await hash(password, row.salt, KEY_BYTES), row.hash) ? row.id : undefined;
}

/** The new account's id; undefined when there is an account with this address. */
export async function register(email, password) {
  // Not the address: orders, events and logs have this id, and need no more of a person than that.
  const [id, salt] = [`c_${randomBytes(12).toString('hex')}`, randomBytes(16)];
  const [done] = await pool.query('INSERT IGNORE INTO accounts VALUES (?, ?, ?, ?)', [
    id, email, salt, await hash(password, salt, KEY_BYTES),
  ]);
  return done.affectedRows === 1 ? id : undefined;
}

export async function emailOf(id) {
  const [[row]] = await pool.query('SELECT email FROM accounts WHERE id = ?', [id]);
  return row?.email;
}

/** The adapter that oidc-provider asks for: one object for each kind of artifact. */
export class Adapter {
  constructor(model) { this.model = model; }

  async upsert(id, payload, expiresIn) {
    const expiresAt = expiresIn ? Math.floor(Date.now() / 1000) + expiresIn : null;
    await pool.query('REPLACE INTO artifacts VALUES (?, ?, ?, ?, ?, NULL, ?)', [
      this.model, id, payload.grantId ?? null, payload.uid ?? null, JSON.stringify(payload), expiresAt,
    ]);
  }

  async #first(where, value) {
    const [[row]] = await pool.query(
      `SELECT payload, consumed_at FROM artifacts WHERE model = ? AND ${where} = ?
       AND (expires_at IS NULL OR expires_at > UNIX_TIMESTAMP())`, [this.model, value]);
    if (!row) return undefined;
    const payload = typeof row.payload === 'string' ? JSON.parse(row.payload) : row.payload;
    return row.consumed_at ? { ...payload, consumed: row.consumed_at } : payload;
  }

  find(id) { return this.#first('id', id); }
  findByUid(uid) { return this.#first('uid', uid); }
  async findByUserCode() { return undefined; }

  async consume(id) {
    await pool.query('UPDATE artifacts SET consumed_at = UNIX_TIMESTAMP() WHERE model = ? AND id = ?', [this.model, id]);
  }

  async destroy(id) { await pool.query('DELETE FROM artifacts WHERE model = ? AND id = ?', [this.model, id]); }
  async revokeByGrantId(id) { await pool.query('DELETE FROM artifacts WHERE model = ? AND grant_id = ?', [this.model, id]); }
}
