import { DeepPartial, VendureEntity } from '@vendure/core';
import { Column, Entity, Index } from 'typeorm';

/** Work that is on record before it is done: what seckill said (inbox), and what the shop reports to it (outbox). */
@Entity()
export class SeckillTask extends VendureEntity {
    constructor(input?: DeepPartial<SeckillTask>) {
        super(input);
    }

    /** What makes two of them the same one: the `webhook-id`, or what is reported. A second one is dropped. */
    @Index({ unique: true })
    @Column({ length: 190 })
    key: string;

    @Column()
    kind: string;

    @Column('text')
    body: string;

    @Column({ default: 0 })
    attempts: number;

    /** Unix milliseconds; not tried before. Null: it is done. */
    @Index()
    @Column('bigint', { nullable: true })
    dueAt: number | null;

    @Column('text', { nullable: true })
    error: string | null;
}
