import { describe, expect, it } from 'vitest';
import { durationOf, holderRows, printable, tableOf } from '../../../lib/cli/table.js';
import type { InspectedHolder } from '../../../lib/core/holders/holders.js';

const holder = (more: Partial<InspectedHolder> = {}): InspectedHolder => ({
  ...{ owner: 'a1:1', count: 1, remainingMs: 28_440 },
  ...more,
});
const tableOfHolders = (...holders: readonly InspectedHolder[]): string =>
  tableOf(holderRows('order:42', { kind: 'exclusive', holders }));

describe('the table', () => {
  it('is aligned, and has no column without a value', () => {
    expect(tableOfHolders(holder(), holder({ owner: 'a-longer-owner:7', remainingMs: Infinity }))).toBe(
      [
        'KEY       KIND       OWNER             REMAINING',
        'order:42  exclusive  a1:1              28.4 s',
        'order:42  exclusive  a-longer-owner:7  no end',
        '',
      ].join('\n'),
    );
  });

  it('shows what a store knows of the process of a holder, for any row that has it', () => {
    const process = { instanceId: 'a1', client: 'node', host: 'web-1', pid: 4711, appName: 'shop' } as const;
    const known = holder({ process, heldMs: 61_000, label: 'nightly', count: 3 });
    expect(tableOfHolders(known, holder())).toBe(
      [
        'KEY       KIND       OWNER  REMAINING  ENTERED  HOST   PID   APP   HELD       LABEL',
        'order:42  exclusive  a1:1   28.4 s     3        web-1  4711  shop  1 min 1 s  nightly',
        'order:42  exclusive  a1:1   28.4 s',
        '',
      ].join('\n'),
    );
  });

  it('in a terminal that is too narrow has a block of lines for each row', () => {
    const rows = holderRows('order:42', {
      kind: 'exclusive',
      holders: [holder(), holder({ owner: 'b2:1', label: 'x' })],
    });
    const wide = tableOf(rows);
    const columns = wide.indexOf('\n');
    expect(tableOf(rows, columns)).toBe(wide);
    expect(tableOf(rows, columns - 1)).toBe(
      [
        ...['KEY        order:42', 'KIND       exclusive', 'OWNER      a1:1', 'REMAINING  28.4 s', ''],
        ...['KEY        order:42', 'KIND       exclusive', 'OWNER      b2:1', 'REMAINING  28.4 s'],
        ...['LABEL      x', ''],
      ].join('\n'),
    );
  });

  it('lets no key and no owner steer the terminal', () => {
    expect(printable('a\u001b[2Jb\nc\u202ed')).toBe('a\\u{1b}[2Jb\\u{a}c\\u{202e}d');
    expect(tableOfHolders(holder({ owner: '\u001b]0;title\u0007' }))).not.toMatch(/[^\P{Cc}\n]/u);
  });

  it('quotes a key, an owner or a label that would look like several columns', () => {
    const rows = holderRows('a  exclusive  b1:1  9 d 0 h', {
      kind: 'permit',
      holders: [holder({ owner: 'x\u3000"y', label: 'nightly  1\nkey' })],
    });
    expect(tableOf(rows).split('\n').slice(1)).toEqual([
      String.raw`"a  exclusive  b1:1  9 d 0 h"  permit  "x${'\u3000'}\"y"  28.4 s     "nightly  1\nkey"`,
      '',
    ]);
  });

  it.each([
    [0, '0 ms'],
    [999, '999 ms'],
    [1_000, '1.0 s'],
    [59_999, '59.9 s'],
    [60_000, '1 min 0 s'],
    [3_599_999, '59 min 59 s'],
    [3_600_000, '1 h 0 min'],
    [187_200_000, '2 d 4 h'],
    [Infinity, 'no end'],
  ])('shows %d ms as %s', (ms, text) => {
    expect(durationOf(ms)).toBe(text);
  });
});
