import { randomUUID } from 'node:crypto';
import { Injectable } from '@nestjs/common';
import { InjectRepository } from '@nestjs/typeorm';
import { LockLostError, type Lease } from 'nest-redis-lock';
import { fenceTransaction } from 'nest-redis-lock/fencing';
import { DataSource, Repository, type EntityManager } from 'typeorm';
import { fenceTable } from './flash-sale.database.js';
import { StaleWriteError, UnknownSkuError } from './flash-sale.errors.js';
import { Order } from './order.entity.js';
import { RefusedWrite } from './refused-write.entity.js';
import { Stock } from './stock.entity.js';

/**
 * Stock as the holder of its lock sees it. Each step is one short transaction, which commits only if no later holder
 * was in the database before.
 */
@Injectable()
export class FencedStock {
  constructor(
    private readonly database: DataSource,
    @InjectRepository(RefusedWrite) private readonly refusedWrites: Repository<RefusedWrite>,
  ) {}

  /**
   * Resolves with the remaining stock, and raises the fence. If only the write raised it, an earlier holder could wake
   * up between our read and our write, and we would overwrite its sale.
   */
  async read(sku: string, lease: Lease): Promise<number> {
    const stock = await this.fenced(sku, 'read', lease, (tx) => tx.findOneBy(Stock, { sku }));
    if (!stock) throw new UnknownSkuError(sku);
    return stock.remaining;
  }

  /** Writes the new stock and the reserved order, both or none. */
  reserve(order: Pick<Order, 'sku' | 'userId' | 'strategy'>, left: number, lease: Lease): Promise<Order> {
    return this.fenced(order.sku, 'reserve', lease, async (tx) => {
      const reserved = tx.create(Order, { ...order, id: randomUUID(), status: 'reserved' });
      await tx.update(Stock, { sku: order.sku }, { remaining: left });
      await tx.insert(Order, reserved);
      return reserved;
    });
  }

  /** Marks the reserved order as paid. */
  confirm(order: Order, lease: Lease): Promise<Order> {
    return this.fenced(order.sku, 'confirm', lease, async (tx) => {
      await tx.update(Order, { id: order.id }, { status: 'paid' });
      return { ...order, status: 'paid' };
    });
  }

  private async fenced<T>(
    sku: string,
    step: string,
    lease: Lease,
    work: (tx: EntityManager) => Promise<T>,
  ): Promise<T> {
    try {
      return await this.database.transaction(async (tx) => {
        await fenceTransaction(tx, lease, { table: fenceTable(this.database) });
        return work(tx);
      });
    } catch (error) {
      if (!(error instanceof LockLostError)) throw error;
      await this.refusedWrites.insert({ sku, token: lease.fencingToken, step });
      throw new StaleWriteError(sku);
    }
  }
}
