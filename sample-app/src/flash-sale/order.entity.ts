import { Column, CreateDateColumn, Entity, Index, PrimaryColumn } from 'typeorm';

/** `reserved`: the article is set aside, but the payment is not confirmed yet. */
export type OrderStatus = 'reserved' | 'paid';

/**
 * One buyer's order of one article. Only the strategy `sql` has a unique constraint, on its own rows. The others have
 * to keep the rule "one order for a user" themselves, or visibly break it.
 */
@Entity('orders')
@Index(['sku', 'userId'], { unique: true, where: `strategy = 'sql'` })
@Index(['sku', 'userId'])
export class Order {
  /** Also the idempotency key of the payment. */
  @PrimaryColumn('uuid')
  id!: string;

  @Column()
  sku!: string;

  @Column({ name: 'user_id' })
  userId!: string;

  @Column()
  strategy!: string;

  @Column({ type: 'text' })
  status!: OrderStatus;

  @CreateDateColumn({ name: 'created_at', type: 'timestamptz' })
  createdAt!: Date;
}
