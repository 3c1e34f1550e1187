// What start.mjs gives this process. A missing one stops the start, by its name.
function needed(name: string): string {
    const value = process.env[name];
    if (!value) throw new Error(`${name} is not set: start the shop with start.sh`);
    return value;
}

export const settings = {
    shopUrl: needed('SHOP_URL'),
    databaseUrl: needed('SHOP_DATABASE_URL'),
    cookieSecret: needed('SHOP_COOKIE_SECRET'),
    adminPassword: needed('SHOP_ADMIN_PASSWORD'),
    idpUrl: needed('IDP_URL'),
    /** Where the customers' browsers buy. */
    seckillApi: needed('SECKILL_API'),
    /** Where this backend reports payments: never reachable for browsers. */
    seckillAdmin: needed('SECKILL_ADMIN'),
    /** A token of the role `money`. */
    seckillToken: needed('SECKILL_TOKEN'),
    /** `whsec_…`, the same as in seckill's [[webhooks]]. */
    webhookSecret: needed('SECKILL_WEBHOOK_SECRET'),
    sale: needed('SECKILL_SALE'),
};
