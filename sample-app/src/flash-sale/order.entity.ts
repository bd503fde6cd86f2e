import { Column, CreateDateColumn, Entity, Index, PrimaryColumn } from 'typeorm';

/** `reserved`: the article is set aside, the payment is not confirmed yet. */
export type OrderStatus = 'reserved' | 'paid';

/**
 * One buyer's order of one article. Only the strategy `sql` may lean on a unique constraint (its index covers its
 * own rows alone): the others have to keep the rule "one order for a user" by themselves, or to break it in sight.
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
