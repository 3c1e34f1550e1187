// Inbox and outbox in one table. A task is added in the transaction of what causes it, and marked as done in the transaction of
// what it does: a crash at any moment leaves it undone and on record. One worker, in order of arrival; a failing task waits
// and lets the others pass.
import { Injectable, OnApplicationShutdown } from '@nestjs/common';
import { Logger, RequestContext, RequestContextService, TransactionalConnection } from '@vendure/core';
import { IsNull, LessThanOrEqual, Not } from 'typeorm';
import { SeckillTask } from './task.entity';

const IDLE_MS = 200;
const PAUSE_MS_MAX = 5_000;

type Work = (ctx: RequestContext, body: any) => Promise<void>;

@Injectable()
export class Tasks implements OnApplicationShutdown {
    private readonly works = new Map<string, Work>();
    private running = false;

    constructor(private connection: TransactionalConnection, private contexts: RequestContextService) {}

    on(kind: string, work: Work) {
        this.works.set(kind, work);
    }

    /** On record when the transaction of `ctx` is. */
    async add(ctx: RequestContext, kind: string, key: string, body: object): Promise<void> {
        const row = { key, kind, body: JSON.stringify(body), dueAt: Date.now() };
        await this.connection.getRepository(ctx, SeckillTask).createQueryBuilder().insert().values(row).orIgnore().execute();
    }

    start() {
        this.running = true;
        void this.loop();
    }

    onApplicationShutdown() {
        this.running = false;
    }

    private async loop() {
        while (this.running) {
            const worked = await this.next().catch((error: Error) => Logger.error(error.message, 'seckill'));
            if (!worked) await new Promise((resolve) => setTimeout(resolve, IDLE_MS));
        }
    }

    /** Whether there was one. */
    private async next(): Promise<boolean> {
        const ctx = await this.contexts.create({ apiType: 'admin' });
        const tasks = this.connection.getRepository(ctx, SeckillTask);
        const task = await tasks.findOne({ where: { dueAt: LessThanOrEqual(Date.now()) }, order: { id: 'ASC' } });
        if (!task) return false;
        try {
            await this.connection.withTransaction(ctx, async (tx) => {
                await this.works.get(task.kind)!(tx, JSON.parse(task.body));
                await this.connection.getRepository(tx, SeckillTask).update(task.id, { dueAt: null, error: null });
            });
        } catch (error) {
            const attempts = task.attempts + 1;
            const dueAt = Date.now() + Math.min(100 * 2 ** attempts, PAUSE_MS_MAX);
            await tasks.update(task.id, { attempts, dueAt, error: String((error as Error).message ?? error) });
            Logger.warn(`${task.key}, try ${attempts}: ${(error as Error).message}`, 'seckill');
        }
        return true;
    }

    /** How many are not done. */
    async waiting(ctx: RequestContext): Promise<number> {
        return this.connection.getRepository(ctx, SeckillTask).countBy({ dueAt: Not(IsNull()) });
    }
}
