import { X509Certificate } from 'node:crypto';
import { createSecureContext } from 'node:tls';
import { expect, it } from 'vitest';
import { selfSignedCertificate } from './certificate.js';

// Lengths of keys, serials and signatures differ from one certificate to the next: one example would prove little.
it('makes certificates that OpenSSL takes, every time', () => {
  for (let i = 0; i < 200; i += 1) {
    const { cert, key } = selfSignedCertificate();
    const parsed = new X509Certificate(cert);
    expect(parsed.verify(parsed.publicKey)).toBe(true);
    expect(parsed.checkIP('127.0.0.1')).toBe('127.0.0.1');
    expect(parsed.checkHost('localhost')).toBe('localhost');
    expect(() => createSecureContext({ cert, key, ca: cert })).not.toThrow();
    expect(cert).not.toMatch(/\n\n/);
  }
});
