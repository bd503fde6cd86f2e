import { CLIENT_FAULTS } from './client.faults.js';
import type { Fault } from './fault.js';
import { LINK_FAULTS } from './link.faults.js';
import { NODE_FAULTS } from './node.faults.js';
import { QUORUM_FAULTS } from './quorum.faults.js';
import { REPLICATED_FAULTS } from './replicated.faults.js';
import { SERVER_FAULTS } from './server.faults.js';
import { SQL_DISK_FAULTS } from './sql-disk.faults.js';
import { SQL_ROWS_FAULTS } from './sql-rows.faults.js';
import { SQL_FAULTS } from './sql.faults.js';
import { WORKER_FAULTS } from './worker.faults.js';
import { ZOOKEEPER_FAULTS } from './zookeeper.faults.js';

/** Every kind of fault there is. To add one, write it beside its family. */
export const FAULTS: readonly Fault[] = [
  ...LINK_FAULTS,
  ...CLIENT_FAULTS,
  ...WORKER_FAULTS,
  ...SERVER_FAULTS,
  ...NODE_FAULTS,
  ...QUORUM_FAULTS,
  ...REPLICATED_FAULTS,
  ...SQL_FAULTS,
  ...SQL_ROWS_FAULTS,
  ...SQL_DISK_FAULTS,
  ...ZOOKEEPER_FAULTS,
];

export const faultNamed = (name: string): Fault => {
  const fault = FAULTS.find((candidate) => candidate.name === name);
  if (!fault)
    throw new Error(`there is no fault "${name}"; there are ${FAULTS.map((one) => one.name).join(', ')}`);
  return fault;
};
