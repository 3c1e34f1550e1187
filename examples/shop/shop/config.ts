import path from 'node:path';
import {
    configureDefaultOrderProcess, DefaultLogger, LogLevel, VendureConfig,
} from '@vendure/core';
import express from 'express';
import { card } from './card';
import { customFields } from './fields';
import { orderProcess } from './seckill/order-process';
import { SeckillPlugin } from './seckill/plugin';
import { settings } from './settings';
import { OidcStrategy } from './sign-in';

const WEBHOOK_BYTES_MAX = 65_536;

/** Whether the catalogue is there. Until then the page's settings are 503. */
export const shop = { ready: false };

const pageSettings: express.RequestHandler = (_request, response) => {
    const { seckillApi, idpUrl, sale } = settings;
    response.status(shop.ready ? 200 : 503).json({ seckillApi, idpUrl, sale });
};

export const config: VendureConfig = {
    apiOptions: {
        hostname: '127.0.0.1',
        port: Number(new URL(settings.shopUrl).port),
        shopApiPath: 'shop-api',
        adminApiPath: 'admin-api',
        // The page is on this origin; no other one calls these APIs.
        cors: false,
        csrfPrevention: true,
        middleware: [
            // The signature of a webhook is over the bytes that came, so they are kept as they are.
            { route: '/hooks/seckill', handler: express.raw({ type: () => true, limit: WEBHOOK_BYTES_MAX }), beforeListen: true },
            { route: 'settings.json', handler: pageSettings },
            { route: '/', handler: express.static(path.join(__dirname, '../storefront')), beforeListen: true },
        ],
    },
    authOptions: {
        tokenMethod: ['cookie', 'bearer'],
        cookieOptions: { secret: settings.cookieSecret, sameSite: 'lax' },
        superadminCredentials: { identifier: 'superadmin', password: settings.adminPassword },
        shopAuthenticationStrategy: [new OidcStrategy()],
    },
    // MariaDB as in production, not SQLite: there all transactions of a process share one connection in TypeORM, and one that
    // is rolled back takes others with it. `synchronize` makes the tables; a real shop has migrations.
    dbConnectionOptions: { type: 'mariadb', url: settings.databaseUrl, synchronize: true },
    paymentOptions: { paymentMethodHandlers: [card] },
    orderOptions: {
        // What was sold is shipped elsewhere: this example asks for no address. Stock is seckill's, not the shop's.
        process: [
            configureDefaultOrderProcess({ arrangingPaymentRequiresShipping: false, arrangingPaymentRequiresStock: false }),
            orderProcess,
        ],
    },
    customFields,
    logger: new DefaultLogger({ level: LogLevel.Info, timestamp: true }),
    plugins: [SeckillPlugin],
};
