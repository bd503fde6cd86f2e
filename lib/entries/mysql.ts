// Locks in MySQL and MariaDB. Needs the package mysql2.
export {
  MysqlStore,
  type MysqlConnectionOptions,
  type MysqlStoreOptions,
} from '../stores/mysql/mysql.store.js';
