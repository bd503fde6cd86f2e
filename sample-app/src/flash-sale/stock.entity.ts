import { Column, Entity, PrimaryColumn, VersionColumn } from 'typeorm';

/** Remaining stock of one article. */
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
   * Fencing token of the latest lock holder that touched this row, for `locked` and `manual`. Tokens are about 2^51, so
   * they fit PostgreSQL's bigint (which the driver returns as text) and a JS number.
   */
  @Column('bigint', { default: 0, transformer: { to: (value: number) => value, from: Number } })
  fence!: number;
}
