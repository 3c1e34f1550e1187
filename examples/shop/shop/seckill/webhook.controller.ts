// Receives seckill's webhooks (Standard Webhooks): verify, put on record, answer. The work comes afterwards.
import { BadRequestException, Controller, HttpCode, Post, Req } from '@nestjs/common';
import { Ctx, RequestContext } from '@vendure/core';
import type { Request } from 'express';
import { Webhook } from 'standardwebhooks';
import { settings } from '../settings';
import { Tasks } from './tasks';

const webhook = new Webhook(settings.webhookSecret);

@Controller('hooks')
export class WebhookController {
    constructor(private tasks: Tasks) {}

    @Post('seckill')
    @HttpCode(204)
    async receive(@Ctx() ctx: RequestContext, @Req() request: Request): Promise<void> {
        const body = request.body as Buffer;
        let call: { type: string; data: object };
        try {
            // The signature, and that the call is not older than five minutes.
            call = webhook.verify(body.toString('utf8'), request.headers as Record<string, string>) as typeof call;
        } catch (error) {
            throw new BadRequestException((error as Error).message);
        }
        // The same id is the same event, however often it comes: the table drops it.
        await this.tasks.add(ctx, 'event', `event:${request.headers['webhook-id']}`, call.data);
    }
}
