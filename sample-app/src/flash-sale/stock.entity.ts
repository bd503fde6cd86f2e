import { Column, Entity, PrimaryColumn, VersionColumn } from 'typeorm';

/** What is left of one article. */
@Entity('stock')
export class Stock {
  @PrimaryColumn()
  sku!: string;

  @Column('int')
  remaining!: number;

  /** For the strategy `optimistic`: TypeORM raises it with every update. */
  @VersionColumn()
  version!: number;

  /**
   * The fencing token of the latest holder of the lock that touched this row; for `locked` and `manual`. Tokens
   * are about 2^51, so they fit both PostgreSQL's bigint (which the driver hands over as text) and a JS number.
   */
  @Column('bigint', { default: 0, transformer: { to: (value: number) => value, from: Number } })
  fence!: number;
}
