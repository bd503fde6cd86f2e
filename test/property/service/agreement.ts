import { expect } from 'vitest';
import { until } from '../../support/async.js';
import type { Model, Pending } from './model.js';

/** Returns the keys that a caller holds while it waits for others, as its service says. */
export const partlyHeld = (model: Model, service: number): string[] => {
  const believed = new Set(model.believedBy(service).map(({ key }) => key));
  return model.world.services[service]!.held()
    .map(({ key }) => key)
    .filter((key) => !believed.has(key));
};

/** The keys that this caller takes in the store, in order; those that it is inside of already it does not. */
const toBeTaken = (model: Model, { outer, service, keys }: Pending): readonly string[] =>
  keys.filter((key) => !model.enclosing(outer, service, key));

/** What is wrong with one service; undefined when all is as the model says. */
const troubleOf = (model: Model, service: number): string | undefined => {
  const locks = model.world.services[service]!;
  const partly = partlyHeld(model, service);
  const taker = model.takerOfSeveral(service);
  const order = taker ? toBeTaken(model, taker) : [];
  if (partly.join() !== order.slice(0, partly.length).join()) return `it holds ${partly.join()} for nobody`;
  const believed = model.believedBy(service);
  if (locks.held().length !== believed.length + partly.length) return 'it forgot what it holds';

  const pending = model.pending.filter((one) => one.service === service);
  const awaited = pending.flatMap((one) => (one === taker ? order[partly.length] : one.keys[0]) ?? []);
  const entries = model.stacks
    .flat()
    .filter((entry) => entry.isLease && !entry.isReleased && entry.service === service);
  const usage = {
    leases: entries.length + pending.length,
    keys: new Set([...believed.map(({ key }) => key), ...partly, ...awaited]).size,
    holds: believed.length + partly.length,
    undoing: 0,
  };
  if (JSON.stringify(locks.usage) === JSON.stringify(usage)) return undefined;
  return `usage is ${JSON.stringify(locks.usage)}, not ${JSON.stringify(usage)}`;
};

/** Whoever waits has to have a reason, and time. */
const idleWaiter = (model: Model): string | undefined => {
  const { services } = model.world;
  const late = model.pending.find(({ deadline }) => deadline <= model.world.now());
  if (late) return `actor ${late.actor} was not told that its wait is over`;
  const partly = services.map((_, service) => partlyHeld(model, service));
  const idle = model.pending.find((pending) => {
    const { service, keys } = pending;
    const isMine = (owner: number): boolean => owner === service && keys.length > 1;
    const isAwaited = (key: string): boolean =>
      model.isHeldFrom(service, key) || partly.some((held, owner) => held.includes(key) && !isMine(owner));
    // Into what it is inside of already it goes at once.
    return !toBeTaken(model, pending).some(isAwaited);
  });
  return idle && `actor ${idle.actor} waits for nobody`;
};

/** Compares what the store says of each key. */
const strangeHold = async (model: Model): Promise<string | undefined> => {
  const { services, isVirtual } = model.world;
  const partly = services.flatMap((_, service) => partlyHeld(model, service));
  for (const [i, key] of model.keys.entries()) {
    const info = (await services[i % services.length]!.inspect(key))?.holders[0] ?? null;
    const hold = model.liveHold(key);
    if ((info !== null) !== (hold !== undefined || partly.includes(key)))
      return `key ${i} is held by a stranger`;
    if (info && hold && info.remainingMs > hold.longestMs)
      return `key ${i} lasts longer than its holder asked for`;
    if (!info || !hold || hold.endsAt === Infinity || !isVirtual) continue;
    if (info.remainingMs !== hold.endsAt - model.world.now()) return `key ${i} ends at another time`;
  }
  return undefined;
};

const wrongLease = (model: Model): string | undefined => {
  for (const { opened, parts, isReleased } of model.stacks.flat()) {
    const isLost = parts.some(({ hold }) => hold.isLost);
    const { lease } = opened;
    if (lease.lost !== isLost) return `a lease says that it is ${isLost ? 'not ' : ''}lost`;
    if (lease.remainingMs() > 0 !== (!isLost && !isReleased))
      return 'a lease does not know how long it lasts';
    if (!isReleased && lease.signal.aborted !== isLost) return 'a signal does not tell of the loss';
  }
  return undefined;
};

/** Lets everything come to rest and compares it with the model. */
export const settle = async (model: Model, renewed = false): Promise<void> => {
  const { world } = model;
  const trouble = async (): Promise<string | undefined> => {
    await world.rest();
    model.age(renewed);
    model.observe();
    const ofServices = world.services.map((_, service) => troubleOf(model, service)).find(Boolean);
    return ofServices ?? idleWaiter(model) ?? wrongLease(model) ?? (await strangeHold(model));
  };
  let last = await trouble();
  if (last !== undefined && !world.isVirtual) {
    // Where answers take time, it has to be right in the end.
    const right = async (): Promise<boolean> => (last = await trouble()) === undefined;
    await until(right, { timeoutMs: 5_000 }).catch(() => expect.fail(last));
  }
  expect(last).toBeUndefined();
};

/** Ends all that is open or awaited. */
export const endAll = async (model: Model): Promise<void> => {
  for (const { caller } of model.pending) caller.abort();
  await until(() => model.pending.every(({ result }) => result.state !== 'pending'));
  model.observe();
  for (const stack of model.stacks) {
    for (const entry of stack.splice(0).reverse()) {
      await entry.opened.end().catch((error: unknown) => expect(error).toMatchObject({ code: 'LOCK_LOST' }));
      model.drop(entry);
    }
  }
};
