import { hasReaders } from '../lock-place.js';

/** Without read-write locks, a report is a holder like each other. */
const isReadWrite = hasReaders(process.env['LOCK_STORE'] ?? 'redis');

/** Modes of the lock of a sku, for reports and for sales. */
export const READING = isReadWrite ? 'read' : 'exclusive';
export const SELLING = isReadWrite ? 'write' : 'exclusive';
