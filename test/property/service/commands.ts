import fc from 'fast-check';
import { expect } from 'vitest';
import type { Lease } from '../../../lib/core/lease/lease.js';
import { until } from '../../support/async.js';
import { watched } from '../../support/core/core-under-test.js';
import { runIn, take, type Style } from './actor.js';
import { partlyHeld, settle } from './agreement.js';
import { ACTORS, KEYS, type Entry, type Model } from './model.js';
import { RENEWAL_MS, SERVICES, BATCH_MS, type World } from './world.js';

export type ServiceCommand = fc.AsyncCommand<Model, World>;

type Run = (model: Model, world: World) => Promise<void>;

/** A command that says what it is. `check` tells whether it can be given; afterwards all has to agree again. */
const command = (
  name: string,
  run: Run,
  check: (model: Model) => boolean = () => true,
  renewed = false,
): ServiceCommand => ({
  check,
  run: async (model, world) => {
    await run(model, world);
    await settle(model, renewed);
  },
  toString: () => name,
});

const HOUR_MS = 3_600_000;

interface Wish {
  readonly actor: number;
  readonly service: number;
  readonly at: readonly number[];
  readonly style: Style;
  readonly waitMs: number;
  readonly leaseMs: number | undefined;
  readonly onLost: 'event' | 'throw';
  /** Whether the call says which section it is a part of. Otherwise it is an ordinary caller. */
  readonly isProven: boolean;
}

const innermost = (model: Model, actor: number): Entry | undefined => model.stacks[actor]!.at(-1);

/** Runs it inside the actor's innermost section, if there is one. */
const inContext = <T>(model: Model, actor: number, action: () => T): T => {
  const inside = model.section(actor)?.opened.inside;
  return inside ? inside.runInAsyncScope(action) : action();
};

/** The section that the call of a wish is proven inside of. */
const outerOf = (model: Model, { actor, isProven }: Wish): Entry | undefined =>
  isProven ? model.section(actor) : undefined;

/** Nested calls for one key go in one at a time: a sibling that is in would have to go first, and is our own. */
const isGateFree = (model: Model, wish: Wish): boolean =>
  wish.at.every((i) => {
    const stack = model.stacks[wish.actor]!;
    const enclosing = model.enclosing(outerOf(model, wish), wish.service, model.keys[i]!);
    if (!enclosing) return true;
    const above = stack.slice(stack.indexOf(enclosing) + 1);
    return !above.some((entry) => entry.parts.some(({ hold }) => hold.key === model.keys[i]));
  });

const canTake = (model: Model, wish: Wish): boolean => {
  const { actor, service, at, waitMs } = wish;
  if (model.pendingOf(actor) || model.stacks[actor]!.length === 4 || !isGateFree(model, wish)) return false;
  if (at.length > 1 && model.takerOfSeveral(service)) return false;
  // What it is inside of may be lost while it waits for the others; that is not for so simple a model.
  const isInside = at.some((i) => model.enclosing(outerOf(model, wish), service, model.keys[i]!));
  if (at.length > 1 && isInside && waitMs > 0) return false;
  // Nested, it may wait without end where the order is not that of everybody else.
  return waitMs < Infinity || model.stacks[actor]!.length === 0;
};

/** Whether somebody may be in the way. */
const isTaken = (model: Model, wish: Wish, key: string): boolean =>
  !model.enclosing(outerOf(model, wish), wish.service, key) &&
  (model.isHeldFrom(wish.service, key) || model.pending.some((other) => other.keys.includes(key)));

/** Whether another caller holds the key now. A caller that waits for several keys holds only the first of them. */
const isHeldElsewhere = (model: Model, wish: Wish, key: string): boolean =>
  !model.enclosing(outerOf(model, wish), wish.service, key) &&
  (model.isHeldFrom(wish.service, key) ||
    model.world.services.some((_, other) => partlyHeld(model, other).includes(key)));

const requests = (wish: Wish): ServiceCommand =>
  command(
    `${wish.actor} wants ${wish.at.join('+')} of service ${wish.service}: ${wish.style}, waits ${wish.waitMs} ms, ` +
      `${wish.leaseMs ? `for ${wish.leaseMs} ms` : 'watchdog'}${wish.onLost === 'throw' ? ', throws' : ''}` +
      `${wish.isProven ? '' : ', ordinary'}`,
    async (model, world) => {
      const { actor, service, at, style, waitMs, leaseMs, onLost } = wish;
      const wanted = at.map((i) => model.keys[i]!);
      const keys = [...wanted].sort();
      const wasBlocked = keys.some((key) => isTaken(model, wish, key));
      const outer = outerOf(model, wish);
      const stops = keys.findIndex((key) => model.isInLost(outer, service, key));
      // A caller of several keys requests them in their order.
      const isInLost = stops !== -1 && !keys.slice(0, stops).some((key) => isHeldElsewhere(model, wish, key));
      const caller = new AbortController();
      const options = {
        ...{ waitMs, leaseMs, signal: caller.signal, inside: outer?.opened.lease },
        ...(style === 'section' && { onLost }),
      };
      const result = watched(
        inContext(model, actor, () => take(world.services[service]!, style, wanted, options)),
      );
      const deadline = world.now() + waitMs;
      const throwsWhenLost = style === 'section' && onLost === 'throw';
      model.pending.push({
        actor,
        outer,
        service,
        keys,
        deadline,
        leaseMs,
        throwsWhenLost,
        caller,
        result,
        wasBlocked,
        isInLost,
      });
    },
    (model) => canTake(model, wish),
  );

/** What a section around the caller holds, without saying that the call is a part of it. */
const requestsAgain = (actor: number, service: number, at: number): ServiceCommand =>
  command(
    `${actor} wants ${at} of service ${service} again, as an ordinary caller`,
    async (model, world) => {
      const again = (waitMs: number): Promise<Lease> =>
        inContext(model, actor, () => world.services[service]!.acquire(model.keys[at]!, { waitMs }));
      await expect(again(Infinity)).rejects.toMatchObject({ code: 'LOCK_NOT_REENTRANT' });
      await expect(again(0)).rejects.toMatchObject({ code: 'LOCK_TAKEN', heldAround: true });
    },
    (model) => !model.pendingOf(actor) && model.isHeldAround(actor, service, model.keys[at]!),
  );

/** A section inside a lease that was taken by hand. */
const runs = (actor: number): ServiceCommand =>
  command(
    `${actor} runs a section in its lease`,
    async (model) => {
      const { opened, service, parts, outer, isReleased } = innermost(model, actor)!;
      const running = inContext(model, actor, () => runIn(opened.lease));
      if (parts.some(({ hold }) => hold.isLost)) {
        return expect(running).rejects.toMatchObject({ code: 'LOCK_LOST' });
      }
      if (isReleased) return expect(running).rejects.toMatchObject({ code: 'LOCK_CONFIGURATION' });
      const inside = parts.map(({ hold }) => ({ hold, isOwn: false }));
      const section = { opened: await running, service, parts: inside, outer };
      model.stacks[actor]!.push({ ...section, isLease: false, throwsWhenLost: false });
    },
    (model) => {
      const entry = innermost(model, actor);
      return entry !== undefined && !entry.opened.inside && !model.pendingOf(actor);
    },
  );

/** The actor's innermost lease is released, or its innermost section comes to its end. */
const ends = (actor: number): ServiceCommand =>
  command(
    `${actor} ends`,
    async (model) => {
      const entry = model.stacks[actor]!.pop()!;
      const { opened, parts, throwsWhenLost } = entry;
      const isLost = parts.some(({ hold, isOwn }) => hold.isLost || (isOwn && !hold.inStore));
      const ending = opened.end();
      if (isLost && throwsWhenLost) await expect(ending).rejects.toMatchObject({ code: 'LOCK_LOST' });
      else expect(await ending).toBe(opened.inside ? 'done' : isLost ? 'lost' : 'released');
      model.drop(entry);
      if (entry.isLease) model.ended[actor]!.push({ lease: opened.lease, wasLost: opened.lease.lost });
      // Whatever it says is final.
      if (!opened.inside) expect(await opened.lease.release()).toBe(isLost ? 'lost' : 'released');
    },
    (model) => innermost(model, actor) !== undefined && !model.pendingOf(actor),
  );

const extendsLease = (actor: number, ms: number): ServiceCommand =>
  command(
    `${actor} extends to ${ms} ms`,
    async (model, world) => {
      const { opened, parts } = innermost(model, actor)!;
      const extending = opened.lease.extend(ms);
      if (parts.some(({ hold }) => hold.isLost || !hold.inStore)) {
        await expect(extending).rejects.toMatchObject({ code: 'LOCK_LOST' });
        for (const { hold } of parts) if (!hold.inStore) hold.isLost = true;
        return;
      }
      await extending;
      for (const { hold } of parts) {
        hold.longestMs = Math.max(hold.longestMs, ms);
        const until = world.now() + ms;
        hold.demands.set(opened.lease, Math.max(until, hold.demands.get(opened.lease) ?? 0));
        if (hold.endsAt < Infinity) hold.endsAt = Math.max(hold.endsAt, until);
      }
    },
    (model) => {
      const parts = innermost(model, actor)?.parts ?? [];
      // Of several the others may have been extended when one turns out to be gone.
      return (
        parts.length === 1 || (parts.length > 1 && parts.every(({ hold }) => hold.inStore || hold.isLost))
      );
    },
  );

/** A lease is given back by hand, while its section and those inside go on. */
const releasesByHand = (actor: number, depth: number): ServiceCommand => {
  const chosen = (model: Model): Entry | undefined =>
    model.stacks[actor]!.filter(({ isLease, isReleased }) => isLease && !isReleased).at(-1 - depth);
  return command(
    `${actor} gives back by hand, ${depth} further out`,
    async (model) => {
      const entry = chosen(model)!;
      const isLost = entry.parts.some(({ hold, isOwn }) => hold.isLost || (isOwn && !hold.inStore));
      expect(await entry.opened.lease.release()).toBe(isLost ? 'lost' : 'released');
      model.releaseByHand(actor, entry);
    },
    (model) => {
      const entry = chosen(model);
      // What is lost says so to the end: nothing is given back by hand then.
      return (
        entry !== undefined &&
        !model.pendingOf(actor) &&
        entry.parts.every(({ hold }) => hold.inStore && !hold.isLost)
      );
    },
  );
};

/** What an actor had is over, and stays over, whatever it does with it. */
const usesEnded = (actor: number): ServiceCommand =>
  command(
    `${actor} uses what is over`,
    async (model) => {
      const { lease, wasLost } = model.ended[actor]!.at(-1)!;
      const code = wasLost ? 'LOCK_LOST' : 'LOCK_CONFIGURATION';
      expect(lease.remainingMs()).toBe(0);
      expect(lease.lost).toBe(wasLost);
      await expect(lease.extend(HOUR_MS)).rejects.toMatchObject({ code });
      await expect(lease.run(() => expect.fail('it ran'))).rejects.toMatchObject({ code });
      if (wasLost) expect(await lease.verify()).toBe(false);
      else await expect(lease.verify()).rejects.toMatchObject({ code });
      await lease.release();
    },
    (model) => model.ended[actor]!.length > 0,
  );

const aborts = (actor: number): ServiceCommand =>
  command(
    `${actor} gives up`,
    async (model) => model.pendingOf(actor)!.caller.abort(),
    (model) => model.pendingOf(actor) !== undefined,
  );

/** Within a turn a hold goes to the next caller of its process unseen, also one that was ended by force elsewhere. */
const batchIsOver = async (world: World): Promise<void> => {
  const over = world.now() + BATCH_MS;
  if (!world.isVirtual) await until(() => world.now() > over, { what: 'the turn is over' });
};

const forces = (service: number, at: number): ServiceCommand =>
  command(
    `service ${service} forces ${at}`,
    async (model, world) => {
      const key = model.keys[at]!;
      const hold = model.liveHold(key);
      expect(await world.services[service]!.forceUnlock(key)).toBe(hold !== undefined);
      model.force(service, key);
      if (hold && hold.service !== service) await batchIsOver(world);
    },
    // Who holds it only while waiting for others would hear of it in the end.
    (model) => !model.pending.some(({ keys }) => keys.length > 1 && keys.includes(model.keys[at]!)),
  );

const passes = (): ServiceCommand =>
  command(
    `${RENEWAL_MS} ms pass`,
    async (_model, world) => world.pass!(RENEWAL_MS),
    () => true,
    true,
  );

const actor = fc.nat(ACTORS - 1);
const service = fc.nat(SERVICES - 1);
const at = fc.nat(KEYS - 1);

const wish = (isVirtual: boolean): fc.Arbitrary<Wish> =>
  fc.record({
    actor,
    service,
    at: fc.oneof(
      { weight: 3, arbitrary: at.map((one) => [one]) },
      { weight: 1, arbitrary: fc.uniqueArray(at, { minLength: 2, maxLength: KEYS }) },
    ),
    style: fc.constantFrom<Style>('section', 'section', 'acquire', 'tryAcquire'),
    waitMs: isVirtual ? fc.constantFrom(0, 15_000, 45_000, Infinity) : fc.constantFrom(0, 60_000, Infinity),
    leaseMs: fc.constantFrom(undefined, undefined, ...(isVirtual ? [20_000, 50_000] : [120_000])),
    onLost: fc.constantFrom<'event' | 'throw'>('event', 'throw'),
    isProven: fc.constantFrom(true, true, true, false),
  });

export const sequences = (isVirtual: boolean, maxCommands: number) =>
  fc.commands(
    [
      wish(isVirtual).map(requests),
      wish(isVirtual).map(requests),
      wish(isVirtual).map(requests),
      fc.tuple(actor, service, at).map((args) => requestsAgain(...args)),
      actor.map(runs),
      actor.map(ends),
      actor.map(ends),
      fc.tuple(actor, fc.constantFrom(5_000, 60_000, HOUR_MS)).map((args) => extendsLease(...args)),
      actor.map(aborts),
      fc.tuple(actor, fc.nat(2)).map((args) => releasesByHand(...args)),
      actor.map(usesEnded),
      fc.tuple(service, at).map((args) => forces(...args)),
      ...(isVirtual ? [fc.constant(passes())] : []),
    ],
    { maxCommands, size: 'max' },
  );
