// The catalogue of an empty shop: one product, whose price is the price of the sale.
import { INestApplicationContext } from '@nestjs/common';
import { GlobalFlag } from '@vendure/common/lib/generated-types';
import {
    ChannelService, CurrencyCode, InitialData, LanguageCode, ProductService, ProductVariantService,
    RequestContextService,
} from '@vendure/core';
import { populateInitialData } from '@vendure/core/cli';
import { CARD } from './card';
import { settings } from './settings';

const PRICE = 199_900; // in the currency's smallest unit, as everywhere
const CURRENCY = CurrencyCode.CNY;

const initialData: InitialData = {
    defaultLanguage: LanguageCode.en,
    defaultZone: 'Asia',
    countries: [{ code: 'CN', name: 'China', zone: 'Asia' }],
    taxRates: [{ name: 'Included', percentage: 0 }],
    shippingMethods: [],
    paymentMethods: [{ name: CARD, handler: { code: CARD, arguments: [] } }],
    collections: [],
};

/** Once: what exists is left as it is. */
export async function fillCatalogue(app: INestApplicationContext): Promise<void> {
    const contexts = app.get(RequestContextService);
    const variants = app.get(ProductVariantService);
    const before = await contexts.create({ apiType: 'admin' });
    if ((await variants.findAll(before, { filter: { seckillSale: { eq: settings.sale } } as object })).totalItems) return;
    await app.get(ChannelService).update(before, {
        id: before.channelId, defaultCurrencyCode: CURRENCY, availableCurrencyCodes: [CURRENCY], pricesIncludeTax: true,
    });
    await populateInitialData(app, initialData);
    const ctx = await contexts.create({ apiType: 'admin' });
    const product = await app.get(ProductService).create(ctx, {
        enabled: true,
        translations: [{
            languageCode: LanguageCode.en, name: 'Phone One, first edition', slug: 'phone-one',
            description: 'Numbered, 256 GB. One for each customer.',
        }],
    });
    await variants.create(ctx, [{
        productId: product.id,
        sku: 'phone-one',
        price: PRICE,
        // seckill counts the units. Two counters for one stock would only disagree.
        trackInventory: GlobalFlag.FALSE,
        customFields: { seckillSale: settings.sale },
        translations: [{ languageCode: LanguageCode.en, name: 'Phone One, first edition' }],
    }]);
}
