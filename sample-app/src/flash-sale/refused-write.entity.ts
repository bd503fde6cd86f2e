import { Column, Entity, PrimaryGeneratedColumn } from 'typeorm';

/** A write that the fence rejected, because its lock had passed to another request. The demo counts these rows. */
@Entity('refused_writes')
export class RefusedWrite {
  @PrimaryGeneratedColumn('identity')
  id!: number;

  @Column()
  sku!: string;

  @Column('bigint')
  token!: number;

  @Column()
  step!: string;
}
