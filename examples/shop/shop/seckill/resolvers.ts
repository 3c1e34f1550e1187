import { Args, Mutation, Query, Resolver } from '@nestjs/graphql';
import {
    Allow, Ctx, EntityNotFoundError, Order, Permission, RequestContext, Transaction, idsAreEqual,
} from '@vendure/core';
import gql from 'graphql-tag';
import { SeckillOrders } from './orders';
import { Tasks } from './tasks';

export const shopSchema = gql`
    extend type Query {
        "My orders of the sale, newest first. One that is missing is still on its way here."
        seckillOrders: [Order!]!
    }
    extend type Mutation {
        "Pays my order of a request with the card."
        paySeckillOrder(request: String!): Order!
    }
`;

export const adminSchema = gql`
    extend type Query {
        "Events that are not applied yet, and reports that seckill does not have yet."
        seckillTasksWaiting: Int!
    }
`;

@Resolver()
export class ShopResolver {
    constructor(private orders: SeckillOrders) {}

    @Query()
    @Allow(Permission.Authenticated)
    seckillOrders(@Ctx() ctx: RequestContext) {
        return this.orders.ofUser(ctx);
    }

    @Mutation()
    @Transaction()
    @Allow(Permission.Authenticated)
    async paySeckillOrder(@Ctx() ctx: RequestContext, @Args() { request }: { request: string }) {
        const order = await this.orders.locked(ctx, request);
        const owner = order?.customer?.user?.id;
        if (!order || !owner || !idsAreEqual(owner, ctx.activeUserId)) throw new EntityNotFoundError('Order', request);
        return this.orders.pay(ctx, order);
    }
}

@Resolver()
export class AdminResolver {
    constructor(private tasks: Tasks) {}

    @Query()
    @Allow(Permission.ReadOrder)
    seckillTasksWaiting(@Ctx() ctx: RequestContext) {
        return this.tasks.waiting(ctx);
    }
}
