import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { escapeValue } from '../../../lib/key/escape.js';

const wellFormed = fc.string({ unit: 'binary' });

describe('escapeValue', () => {
  it.each([
    ['a:b', 'a%3Ab'],
    ['{tag}', '%7Btag%7D'],
    ['100%', '100%25'],
    ['%3A', '%253A'],
    ['line\nbreak\r\n\ttab', 'line%0Abreak%0D%0A%09tab'],
    ['\0\x1f\x7f', '%00%1F%7F'],
    ['\x80\x85\x9f', '%C2%80%C2%85%C2%9F'],
  ])('writes %j as %j', (value, escaped) => {
    expect(escapeValue(value)).toBe(escaped);
  });

  it.each([
    'order-1',
    'a b',
    '<<x>>',
    'ümlaut',
    '日本',
    '😀',
    '\u00a0\u2028',
    '__proto__',
    '[a],(b);"c"\'/\\*',
  ])('leaves %j as it is', (value) => {
    expect(escapeValue(value)).toBe(value);
  });

  it('escapes after and between characters that are more than one code unit long', () => {
    expect(escapeValue('😀:😀%😀')).toBe('😀%3A😀%25😀');
  });

  it('escapes a value of 10,000 characters', () => {
    expect(escapeValue(':'.repeat(10_000))).toBe('%3A'.repeat(10_000));
    expect(escapeValue('x'.repeat(10_000))).toBe('x'.repeat(10_000));
  });

  it('refuses half a surrogate pair, alone or beside escaped characters', () => {
    for (const value of [
      '\ud800',
      '\udc00',
      'a\ud800b',
      ':\ud800',
      '\ud800:',
      '\udc00\ud800',
      '\ud800\ud800\udc00',
    ]) {
      expect(escapeValue(value)).toBeUndefined();
    }
  });

  it('is undone by percent-decoding, so two values never share a form', () => {
    fc.assert(
      fc.property(wellFormed, (value) => {
        expect(decodeURIComponent(escapeValue(value) ?? 'refused')).toBe(value);
      }),
      { numRuns: 2_000 },
    );
  });

  it('leaves nothing in a value that separates keys, tags a slot or tears a line', () => {
    fc.assert(
      fc.property(wellFormed, (value) => {
        expect(escapeValue(value)).not.toMatch(/[:{}\p{Cc}]/u);
      }),
      { numRuns: 2_000 },
    );
  });

  it('refuses exactly the strings that UTF-8 cannot carry', () => {
    const anyUnits = fc
      .array(fc.oneof(fc.integer({ min: 0xd7f0, max: 0xe00f }), fc.integer({ min: 0, max: 0xffff })))
      .map((units) => String.fromCharCode(...units));
    fc.assert(
      fc.property(anyUnits, (value) => {
        const survives = Buffer.from(value, 'utf8').toString('utf8') === value;
        expect(escapeValue(value) !== undefined).toBe(survives);
      }),
      { numRuns: 2_000 },
    );
  });
});
