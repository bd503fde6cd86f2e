import type { DataSource, DataSourceOptions } from 'typeorm';
import { Order } from './order.entity.js';
import { RefusedWrite } from './refused-write.entity.js';
import { Stock } from './stock.entity.js';

type PostgresOptions = Extract<DataSourceOptions, { type: 'postgres' }>;

/** Returns the tables of one namespace in a PostgreSQL database. */
export const flashSaleDatabase = (url: string, namespace: string): PostgresOptions => ({
  type: 'postgres',
  url,
  entities: [Stock, Order, RefusedWrite],
  entityPrefix: `${namespace}_`,
});

/** Returns the table of the fences, which `fenceTransaction` uses, in the namespace of a database. */
export const fenceTable = ({ options }: DataSource): string => `${options.entityPrefix ?? ''}lock_fence`;
