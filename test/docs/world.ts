import { Injectable, Module } from '@nestjs/common';

/**
 * What the examples of the documentation talk about without showing it: the app around them. It does nothing but to note
 * what it was asked.
 */
export const calls: { readonly name: string; readonly args: readonly unknown[] }[] = [];

/** Runs while a call of that name is made. */
export const during = new Map<string, () => Promise<unknown>>();

const note = async (name: string, ...args: unknown[]): Promise<void> => {
  calls.push({ name, args });
  await during.get(name)?.();
};

export interface OrderDto {
  readonly sku: string;
  readonly pieces: number;
}

export interface Order {
  readonly id: string;
}

export interface Cart {
  readonly owner: { readonly id: number };
}

@Injectable()
export class StockRepository {
  async reserve(dto: OrderDto, fencingToken: number): Promise<Order> {
    await note('reserve', dto, fencingToken);
    return { id: 'order-1' };
  }

  async add(sku: string, pieces: number, fencingToken: number): Promise<number> {
    await note('add', sku, pieces, fencingToken);
    return pieces;
  }

  bookTransfer(from: string, to: string, cents: number): Promise<void> {
    return note('bookTransfer', from, to, cents);
  }

  report(): Promise<void> {
    return note('report');
  }

  rebuildIndex(options: { readonly signal: AbortSignal }): Promise<void> {
    return note('rebuildIndex', options);
  }
}

@Injectable()
export class PaymentClient {
  charge(
    order: Order,
    options: { readonly signal: AbortSignal; readonly idempotencyKey?: string },
  ): Promise<void> {
    return note('charge', order, options);
  }
}

/** What users have paid for and not used yet. */
@Injectable()
export class Credits {
  async take(userId: string): Promise<boolean> {
    await note('take', userId);
    return true;
  }
}

@Injectable()
export class Settings {
  readonly redisUrl: string = 'redis://localhost:6379';

  tenant(): string {
    return 'acme';
  }
}

@Module({ providers: [Settings], exports: [Settings] })
export class SettingsModule {}

/** The rest of the app; what a page shows is added by the test. */
@Module({})
export class ShopModule {}

/** The transaction that Prisma passes to the function of `$transaction`. */
export interface PrismaTransaction {
  $queryRawUnsafe(sql: string, ...parameters: unknown[]): Promise<Record<string, unknown>[]>;
  $executeRawUnsafe(sql: string, ...parameters: unknown[]): Promise<number>;
}

/** A double of Prisma's client. A test gives it a database. */
@Injectable()
export class PrismaService {
  begin: (work: (tx: PrismaTransaction) => Promise<void>) => Promise<void> = () => Promise.resolve();

  $transaction(work: (tx: PrismaTransaction) => Promise<void>): Promise<void> {
    return this.begin(work);
  }
}

export interface Metrics {
  count(name: string, labels: Record<string, unknown>): void;
}

export interface Mailer {
  send(): Promise<void>;
  failed(error: unknown): void;
}

export const stock = new StockRepository();
export const payments = new PaymentClient();

/** Stands in for that of `@nestjs-cls/transactional`: a transaction that notes its begin and its commit. */
export const Transactional =
  () =>
  (
    _target: object,
    _name: PropertyKey,
    descriptor: TypedPropertyDescriptor<(...args: never[]) => Promise<void>>,
  ) => {
    const work = descriptor.value!;
    descriptor.value = async function (...args) {
      await note('begin');
      await work.apply(this, args);
      await note('commit');
    };
  };
