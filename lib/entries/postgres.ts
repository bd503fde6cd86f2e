// Locks in PostgreSQL. Needs the package pg.
export { PostgresStore, type PostgresStoreOptions } from '../stores/postgres/postgres.store.js';
