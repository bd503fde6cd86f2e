import { createPublicKey, generateKeyPairSync, randomBytes, sign } from 'node:crypto';

// Just enough DER to write one X.509 certificate; the openssl command is not on every machine.
const der = (tag: number, ...parts: Buffer[]): Buffer => {
  const body = Buffer.concat(parts);
  const length =
    body.length < 0x80
      ? Buffer.from([body.length])
      : body.length < 0x100
        ? Buffer.from([0x81, body.length])
        : Buffer.from([0x82, body.length >> 8, body.length & 0xff]);
  return Buffer.concat([Buffer.from([tag]), length, body]);
};
const sequence = (...parts: Buffer[]) => der(0x30, ...parts);
const set = (...parts: Buffer[]) => der(0x31, ...parts);
const explicit = (index: number, ...parts: Buffer[]) => der(0xa0 + index, ...parts);
const oid = (hex: string) => der(0x06, Buffer.from(hex, 'hex'));
const octets = (content: Buffer) => der(0x04, content);
const bits = (content: Buffer) => der(0x03, Buffer.from([0]), content);
const utcTime = (date: Date) =>
  der(0x17, Buffer.from(`${date.toISOString().replace(/[-:T]/g, '').slice(2, 14)}Z`, 'ascii'));

const ECDSA_WITH_SHA256 = sequence(oid('2a8648ce3d040302'));
const COMMON_NAME = oid('550403');
const BASIC_CONSTRAINTS = oid('551d13');
const SUBJECT_ALT_NAME = oid('551d11');
const TRUE = der(0x01, Buffer.from([0xff]));

const DAY_MS = 86_400_000;

export interface Certificate {
  /** The certificate, which is also the authority to trust. */
  readonly cert: string;
  readonly key: string;
}

const pem = (label: string, content: Buffer) => {
  const lines = content.toString('base64').match(/.{1,64}/g) ?? [];
  return `-----BEGIN ${label}-----\n${lines.join('\n')}\n-----END ${label}-----\n`;
};

/** A self-signed certificate for `localhost` and 127.0.0.1, valid from yesterday until tomorrow. */
export function selfSignedCertificate(): Certificate {
  const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const name = sequence(set(sequence(COMMON_NAME, der(0x0c, Buffer.from('localhost')))));
  const serial = Buffer.concat([Buffer.from([0x01]), randomBytes(8)]);
  const hosts = sequence(der(0x82, Buffer.from('localhost')), der(0x87, Buffer.from([127, 0, 0, 1])));
  const body = sequence(
    explicit(0, der(0x02, Buffer.from([2]))),
    der(0x02, serial),
    ECDSA_WITH_SHA256,
    name,
    sequence(utcTime(new Date(Date.now() - DAY_MS)), utcTime(new Date(Date.now() + DAY_MS))),
    name,
    createPublicKey(privateKey).export({ type: 'spki', format: 'der' }),
    explicit(
      3,
      sequence(
        sequence(BASIC_CONSTRAINTS, TRUE, octets(sequence(TRUE))),
        sequence(SUBJECT_ALT_NAME, octets(hosts)),
      ),
    ),
  );
  return {
    cert: pem('CERTIFICATE', sequence(body, ECDSA_WITH_SHA256, bits(sign('sha256', body, privateKey)))),
    key: privateKey.export({ type: 'pkcs8', format: 'pem' }).toString(),
  };
}
