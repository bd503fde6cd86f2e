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
}
