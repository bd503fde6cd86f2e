import type { Requests } from '../requests.js';

const LENGTH_BYTES = 4;
/** Where the operation of a request is, behind its length and its number. */
const OP_AT = 8;
const NAMES: Readonly<Record<number, string>> = { 2: 'remove', 4: 'getData', 15: 'create' };

/** Requests of ZooKeeper, which are frames with a number for their operation. */
export const ENSEMBLE_REQUESTS: Requests = {
  parts: { acquire: ['create'], extend: ['getData'], release: ['remove'] },
  textOf(_connection, chunk) {
    let names = '';
    for (let at = 0; at + OP_AT + LENGTH_BYTES <= chunk.length; at += LENGTH_BYTES + chunk.readInt32BE(at))
      names += `${NAMES[chunk.readInt32BE(at + OP_AT)] ?? ''} `;
    return names;
  },
};
