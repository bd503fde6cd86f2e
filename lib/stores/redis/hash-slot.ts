import { hashTag } from '../key-rule.js';

/** Number of slots of Redis Cluster. A slot is CRC16 (XMODEM) of the hash tag, modulo this. */
const SLOTS = 16_384;

const CRC_TABLE = Uint16Array.from({ length: 256 }, (_, byte) => {
  let crc = byte << 8;
  for (let bit = 0; bit < 8; bit++) crc = crc & 0x8000 ? (crc << 1) ^ 0x1021 : crc << 1;
  return crc & 0xffff;
});

const crc16 = (text: string): number => {
  let crc = 0;
  for (let i = 0; i < text.length; i++) {
    const unit = text.charCodeAt(i);
    if (unit > 0x7f) return crc16OfBytes(Buffer.from(text));
    crc = ((crc << 8) & 0xffff) ^ CRC_TABLE[(crc >> 8) ^ unit]!;
  }
  return crc;
};

const crc16OfBytes = (bytes: Buffer): number => {
  let crc = 0;
  for (const byte of bytes) crc = ((crc << 8) & 0xffff) ^ CRC_TABLE[(crc >> 8) ^ byte]!;
  return crc;
};

export const hashSlot = (name: string): number => crc16(hashTag(name)) % SLOTS;

let tags: readonly string[] | undefined;

/** Returns the smallest decimal number that hashes to the slot. It is part of key names, so it never changes. */
export const tagOfSlot = (slot: number): string => {
  tags ??= buildTags();
  return tags[slot]!;
};

const buildTags = (): string[] => {
  const found = new Array<string>(SLOTS);
  for (let n = 0, missing = SLOTS; missing > 0; n++) {
    const slot = crc16(String(n)) % SLOTS;
    if (found[slot] === undefined) {
      found[slot] = String(n);
      missing--;
    }
  }
  return found;
};
