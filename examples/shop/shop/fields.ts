// What an order and a variant of the shop know about seckill.
import { CustomFields } from '@vendure/core';

declare module '@vendure/core/dist/entity/custom-entity-fields' {
    interface CustomOrderFields {
        /** The request that became the order: the id that both systems share. */
        seckillRequest?: string;
        /** UNPAID, PAID, EXPIRED or CANCELLED, as the last event said. */
        seckillState?: string;
        /** Of the last event that was applied: an older one that arrives later changes nothing. */
        seckillVersion?: number;
    }
    interface CustomProductVariantFields {
        /** The sale that sells this variant. */
        seckillSale?: string;
    }
}

export const customFields: CustomFields = {
    Order: [
        { name: 'seckillRequest', type: 'string', nullable: true, unique: true, readonly: true },
        { name: 'seckillState', type: 'string', nullable: true, readonly: true },
        { name: 'seckillVersion', type: 'int', nullable: true, readonly: true, public: false },
    ],
    ProductVariant: [{ name: 'seckillSale', type: 'string', nullable: true, unique: true }],
};
