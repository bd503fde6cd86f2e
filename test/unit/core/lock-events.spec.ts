import { setImmediate as turn } from 'node:timers/promises';
import { runInNewContext } from 'node:vm';
import { beforeEach, describe, expect, it } from 'vitest';
import { LockEventHub } from '../../../lib/core/report/lock-events.js';
import type { ShownKey } from '../../../lib/core/util/shown-key.js';
import { collectUnhandledRejections } from '../../support/async.js';
import { Log } from '../../support/core/core-under-test.js';

const busy = { key: 'k' as ShownKey, kind: 'exclusive', label: 'test', waitedMs: 3 } as const;

let log: Log;
let hub: LockEventHub;

beforeEach(() => {
  log = new Log();
  hub = new LockEventHub(log);
});

describe('events', () => {
  it('reach every listener, in the order in which they were added', () => {
    const received: unknown[] = [];
    hub.on('busy', (event) => received.push(['first', event]));
    hub.on('busy', (event) => received.push(['second', event]));
    hub.on('released', (event) => received.push(event));
    hub.emit('busy', () => busy);
    expect(received).toEqual([
      ['first', busy],
      ['second', busy],
    ]);
  });

  it('a listener that throws harms neither who emits nor the next listener, and is named in the log', () => {
    const received: unknown[] = [];
    hub.on('busy', () => {
      throw new Error('listener is broken');
    });
    hub.on('busy', (event) => received.push(event));
    expect(() => hub.emit('busy', () => busy)).not.toThrow();
    expect(received).toEqual([busy]);
    expect(log.lines).toHaveLength(1);
    expect(log.lines[0]).toMatch(/"busy".*listener is broken/);
  });

  it('an async listener that rejects is no unhandled rejection', async () => {
    const unhandled = collectUnhandledRejections();
    const listener: () => unknown = async () => {
      await turn();
      throw new Error('async listener is broken');
    };
    // A listener is to return nothing; many are async functions all the same.
    hub.on('busy', listener);
    hub.emit('busy', () => busy);
    await turn();
    await turn();
    expect(await unhandled.finish()).toEqual([]);
    expect(log.lines[0]).toContain('async listener is broken');
  });

  it.each([
    [
      'a thenable',
      () => ({ then: (_: unknown, reject: (error: Error) => void) => reject(new Error('is broken')) }),
    ],
    [
      'a promise of another realm',
      () => runInNewContext("Promise.reject(new Error('is broken'))") as unknown,
    ],
  ])('a listener that returns %s which rejects is no unhandled rejection', async (_what, listener) => {
    const unhandled = collectUnhandledRejections();
    hub.on('busy', listener);
    hub.emit('busy', () => busy);
    await turn();
    await turn();
    expect(await unhandled.finish()).toEqual([]);
    expect(log.lines).toEqual([expect.stringContaining('is broken')]);
  });

  it('a listener cannot write further lines, or colours, into the log', () => {
    hub.on('busy', () => {
      throw new Error('one\nERROR all is lost \u001b[31m');
    });
    hub.emit('busy', () => busy);
    expect(log.lines).toEqual([expect.stringMatching(/one ERROR all is lost {2}\[31m$/)]);
  });

  it('a listener that changes its event changes it for no other', () => {
    const received: unknown[] = [];
    hub.on('busy', (event) => void Object.assign(event, { key: 'other' }));
    hub.on('busy', (event) => received.push(event));
    hub.emit('busy', () => busy);
    expect(received).toEqual([busy]);
  });

  it('one function added twice hears twice, and is taken off one at a time', () => {
    let received = 0;
    const listener = (): void => void (received += 1);
    const [stopFirst, stopSecond] = [hub.on('busy', listener), hub.on('busy', listener)];
    hub.emit('busy', () => busy);
    expect(received).toBe(2);
    stopFirst();
    stopFirst();
    hub.emit('busy', () => busy);
    expect(received).toBe(3);
    stopSecond();
    hub.emit('busy', () => busy);
    expect(received).toBe(3);
  });

  it('a listener may take itself or another off, or add one, while it is called', () => {
    const received: string[] = [];
    const stop = hub.on('busy', () => {
      received.push('once');
      stop();
      stopOther();
      hub.on('busy', () => received.push('late'));
    });
    const stopOther = hub.on('busy', () => received.push('other'));
    hub.emit('busy', () => busy);
    expect(received).toEqual(['once', 'other']);
    hub.emit('busy', () => busy);
    expect(received).toEqual(['once', 'other', 'late']);
  });

  it('are not even built without a listener', () => {
    let built = 0;
    const build = (): typeof busy => {
      built += 1;
      return busy;
    };
    hub.emit('busy', build);
    const stop = hub.on('busy', () => undefined);
    hub.emit('busy', build);
    stop();
    hub.emit('busy', build);
    expect(built).toBe(1);
  });
});
