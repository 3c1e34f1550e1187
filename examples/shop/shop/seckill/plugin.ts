import { PluginCommonModule, VendurePlugin } from '@vendure/core';
import { SeckillOrders } from './orders';
import { AdminResolver, adminSchema, ShopResolver, shopSchema } from './resolvers';
import { SeckillTask } from './task.entity';
import { Tasks } from './tasks';
import { WebhookController } from './webhook.controller';

@VendurePlugin({
    compatibility: '^3.0.0',
    imports: [PluginCommonModule],
    entities: [SeckillTask],
    providers: [Tasks, SeckillOrders],
    controllers: [WebhookController],
    shopApiExtensions: { schema: shopSchema, resolvers: [ShopResolver] },
    adminApiExtensions: { schema: adminSchema, resolvers: [AdminResolver] },
})
export class SeckillPlugin {}
