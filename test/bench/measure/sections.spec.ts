import { describe, expect, it } from 'vitest';
import { deferred } from '../../support/async.js';
import { Register } from './register.js';
import { Sections } from './sections.js';
import { withRegister } from './together.js';

describe('the check of exclusion', () => {
  it('counts sections, and finds nothing wrong with those that come one after the other', async () => {
    const sections = new Sections(undefined);
    await sections.run('key', 1, async () => undefined);
    await sections.run('key', 2, async () => undefined);
    expect(sections.close()).toEqual({ sections: 2, violations: 0, failures: 0 });
  });

  it('sees two sections of one key in one process', async () => {
    const sections = new Sections(undefined);
    const leave = deferred();
    const first = sections.run('key', undefined, () => leave.promise);
    await sections.run('other', undefined, async () => undefined);
    await sections.run('key', undefined, async () => undefined);
    leave.resolve();
    await first;
    expect(sections.close().violations).toBe(1);
  });

  it('sees two processes inside at the same time', () =>
    withRegister(async (path) => {
      const [one, other] = [new Sections({ path, id: 1 }), new Sections({ path, id: 2 })];
      const leave = deferred();
      const first = one.run('key', undefined, () => leave.promise);
      await other.run('key', undefined, async () => undefined);
      leave.resolve();
      await first;
      expect(one.close().violations + other.close().violations).toBeGreaterThan(0);
    }));

  it('sees a fencing token that is no greater than the one before, with a file or without', () =>
    withRegister(async (path) => {
      for (const use of [{ path, id: 1 }, { id: 1 }]) {
        const sections = new Sections(use);
        await sections.run('key', 5, async () => undefined);
        await sections.run('key', 5, async () => undefined);
        expect(sections.close().violations).toBe(1);
      }
    }));

  it('lets a register begin empty, and sees who overlaps in it, with a file or without', () =>
    withRegister(async (path) => {
      for (const register of [new Register(path, 1), new Register(undefined, 1)]) {
        register.enter(undefined);
        register.leave();
        expect(register.overlaps).toBe(0);
        register.enter(undefined);
        register.enter(undefined);
        expect(register.overlaps).toBe(1);
        register.close();
      }
    }));
});
