import fc from 'fast-check';
import { expect } from 'vitest';
import { holderOf, WakeUpCounter } from '../../support/stores/harness.js';
import { until } from '../../support/async.js';
import { KEYS, type Model } from './model.js';
import { settle } from './server.world.js';
import { ACTORS, type Loss, type World } from './world.js';

export type SeamCommand = fc.AsyncCommand<Model, World>;

type Run = (model: Model, world: World) => Promise<void>;

/** A command that says what it is; `check` tells whether it can be given in this state. */
const command = (name: string, run: Run, check: (model: Model) => boolean = () => true): SeamCommand => ({
  check,
  run,
  toString: () => name,
});

interface Who {
  readonly actor: number;
  readonly at: number;
}

const seatOf = (model: Model, { actor, at }: Who) => {
  const key = model.keys[at]!;
  return { key, seat: key.seats[actor]! };
};

const acquire = (who: Who, units: number, fenceBlock: number): SeamCommand =>
  command(`acquire ${said(who)}, ${units} units, ${fenceBlock} tokens`, async (model, world) => {
    const { key } = seatOf(model, who);
    const claim = model.claim(key, who.actor, { leaseMs: units * world.unitMs, tokens: fenceBlock });
    model.expectReply(key, claim, await world.stores[who.actor]!.kinds.exclusive.acquire(claim));
  });

/** Everybody at once: one gets it. */
const race = (at: number, units: number): SeamCommand =>
  command(`everybody wants key ${at}, ${units} units`, async (model, world) => {
    const key = model.keys[at]!;
    const claims = world.stores.map((_, actor) => model.claim(key, actor, { leaseMs: units * world.unitMs }));
    const replies = await Promise.all(
      world.stores.map((store, actor) => store.kinds.exclusive.acquire(claims[actor]!)),
    );
    const winners = claims.filter((_, i) => replies[i]!.status === 'granted');
    expect(winners).toHaveLength(1);
    if (key.hold) expect(winners[0]!.owner).toBe(key.hold.owner);
    const winner = claims.indexOf(winners[0]!);
    model.expectReply(key, claims[winner]!, replies[winner]!);
    claims.forEach((claim, i) => {
      if (i !== winner) expect(replies[i]!.status).toBe('taken');
      expect(model.isTakenFrom(key, claim.owner)).toBe(i !== winner);
    });
  });

/** The holder asks for another lease; who waits is told if that ends sooner. */
const reacquire = (who: Who, units: number): SeamCommand =>
  command(
    `rearm ${said(who)} to ${units} units`,
    async (model, world) => {
      const { key } = seatOf(model, who);
      const leaseMs = units * world.unitMs;
      const claim = model.claim(key, who.actor, { leaseMs, reacquires: true });
      // What is left in the store is a little less than in the model, so equal is not sooner.
      const reply = await model.notifying(key, model.leftMs(key) > leaseMs, () =>
        world.stores[who.actor]!.kinds.exclusive.acquire(claim),
      );
      model.expectReply(key, claim, reply);
    },
    (model) => model.holds(model.keys[who.at]!, who.actor),
  );

/** What the actor has, or had, or never had, in one batch. */
const extend = (actor: number, units: number): SeamCommand =>
  command(`extend all of ${actor} to ${units} units`, async (model, world) => {
    const leaseMs = units * world.unitMs;
    const requested = model.keys.flatMap((key) => {
      const { owner, stale } = key.seats[actor]!;
      return [owner, stale].map((one) => ({ key, claim: model.claim(key, actor, { owner: one, leaseMs }) }));
    });
    const replies = await world.stores[actor]!.kinds.exclusive.extendMany(
      requested.map(({ claim }) => claim),
    );
    expect(replies).toHaveLength(requested.length);
    replies.forEach((reply, i) => {
      const { key, claim } = requested[i]!;
      const isHeld = key.hold?.owner === claim.owner;
      expect(reply.status).toBe(isHeld ? 'held' : 'lost');
      if (reply.status !== 'held') return;
      model.lengthen(key, leaseMs);
      model.expectLeft(key, reply.validForMs);
    });
  });

const release = (who: Who, stale: boolean): SeamCommand =>
  command(
    `release ${said(who)}${stale ? ', again' : ''}`,
    async (model, world) => {
      const { key, seat } = seatOf(model, who);
      const claim = model.claim(key, who.actor, stale ? { owner: seat.stale } : {});
      const isHeld = key.hold?.owner === claim.owner;
      const reply = await model.notifying(key, isHeld, () =>
        world.stores[who.actor]!.kinds.exclusive.release(claim),
      );
      expect(reply.wasHeld).toBe(isHeld);
      if (!stale) model.giveUpOwner(key, who.actor);
    },
    (model) => stale || !seatOf(model, who).seat.unsettled,
  );

const inspect = (who: Who): SeamCommand =>
  command(`inspect ${said(who)}`, async (model, world) => {
    const { key } = seatOf(model, who);
    const info = await holderOf(world.stores[who.actor]!, key.name);
    expect(info?.owner).toBe(key.hold?.owner);
    if (!info) return;
    expect(info.count).toBe(1);
    model.expectLeft(key, info.remainingMs);
  });

const forceUnlock = (who: Who): SeamCommand =>
  command(`force ${said(who)}`, async (model, world) => {
    const { key } = seatOf(model, who);
    const isHeld = key.hold !== undefined;
    const ended = await model.notifying(key, isHeld, () => world.stores[who.actor]!.forceUnlock(key.name));
    expect(ended).toBe(isHeld);
    key.hold = undefined;
  });

const pass = (units: number): SeamCommand =>
  command(`${units} units pass`, async (model, world) => {
    await world.pass(units * world.unitMs);
    model.pass(units * world.unitMs);
  });

const watch = (who: Who): SeamCommand =>
  command(
    `watch ${said(who)}`,
    async (model, world) => {
      const { key, seat } = seatOf(model, who);
      seat.watch = await WakeUpCounter.live(world.stores[who.actor]!, key.name);
    },
    (model) => !seatOf(model, who).seat.watch,
  );

const unwatch = (who: Who): SeamCommand =>
  command(
    `unwatch ${said(who)}`,
    async (model, world) => {
      const { seat } = seatOf(model, who);
      seat.watch?.watch.close();
      seat.watch = undefined;
      const watches = model.keys.flatMap(({ seats }) => seats.filter((one) => one.watch)).length;
      await until(async () => (await world.leftovers()).watches === watches, {
        what: 'it is no longer told',
      });
    },
    (model) => seatOf(model, who).seat.watch !== undefined,
  );

const acquireWithoutReply = (who: Who, units: number, loss: Loss): SeamCommand =>
  command(
    `acquire ${said(who)}, ${units} units, the ${loss} gets lost`,
    async (model, world) => {
      const { key, seat } = seatOf(model, who);
      const claim = model.claim(key, who.actor, { leaseMs: units * world.unitMs, tokens: 0 });
      const failure = await world.acquireWithoutReply!(who.actor, claim, loss);
      expect(failure.outcome).toBe('unknown');
      if (loss === 'late') return model.giveUpOwner(key, who.actor);
      if (loss === 'reply' && !model.isTakenFrom(key, claim.owner)) {
        const leftMs = (await world.leftMs?.(claim)) ?? claim.leaseMs;
        // Less than one unit has passed since.
        if (leftMs > 0) model.take(key, claim.owner, Math.ceil(leftMs / world.unitMs) * world.unitMs);
      }
      seat.unsettled = { claim, failure };
    },
    (model) => !seatOf(model, who).seat.unsettled,
  );

/** Nobody knows what became of an acquire: it is undone, and then it is certain that it is gone. */
const undo = (): SeamCommand =>
  command(
    'undo what is unsettled',
    async (model, world) => {
      const { key, seat, actor } = unsettledIn(model)!;
      const { claim, failure } = seat.unsettled!;
      const isHeld = model.holds(key, actor);
      const wasHeld = await model.notifying(key, isHeld, () => settle(world.stores[actor]!, claim, failure));
      expect(wasHeld).toBe(isHeld);
      seat.unsettled = undefined;
      model.giveUpOwner(key, actor);
    },
    (model) => unsettledIn(model) !== undefined,
  );

const unsettledIn = (model: Model) =>
  model.keys
    .flatMap((key) => key.seats.map((seat, actor) => ({ key, seat, actor })))
    .find(({ seat }) => seat.unsettled);

const said = ({ actor, at }: Who): string => `${actor} on key ${at}`;

const who = fc.record({ actor: fc.nat(ACTORS - 1), at: fc.nat(KEYS - 1) });
/** Some want more than the server's clock, on which tokens are based, makes up for until the next acquire. */
const tokens = fc.constantFrom(0, 1, 3, 10_000_000);
const units = fc.integer({ min: 1, max: 4 });

/** The late ones take a whole command time-out. */
const loss = fc.oneof(
  { weight: 5, arbitrary: fc.constantFrom<Loss>('request', 'reply') },
  { weight: 1, arbitrary: fc.constant<Loss>('late') },
);

/**
 * Sequences of commands. In a world without a network nothing gets lost, and where the core polls, it has the watches. With
 * sessions, time ends no hold, and waiters are told of their turns.
 */
export const sequences = (
  { acquireWithoutReply: losesReplies, polled, hasSessions }: World,
  maxCommands: number,
) =>
  fc.commands(
    [
      fc.tuple(who, units, tokens).map((args) => acquire(...args)),
      fc.tuple(who, units, tokens).map((args) => acquire(...args)),
      fc.tuple(fc.nat(KEYS - 1), units).map((args) => race(...args)),
      fc.tuple(who, units).map((args) => reacquire(...args)),
      fc.tuple(fc.nat(ACTORS - 1), units).map((args) => extend(...args)),
      fc.tuple(who, fc.boolean()).map((args) => release(...args)),
      fc.tuple(who).map((args) => inspect(...args)),
      fc.tuple(who).map((args) => forceUnlock(...args)),
      ...(hasSessions ? [] : [fc.tuple(units).map((args) => pass(...args))]),
      ...(polled || hasSessions
        ? []
        : [fc.tuple(who).map((args) => watch(...args)), fc.tuple(who).map((args) => unwatch(...args))]),
      ...(losesReplies
        ? [fc.tuple(who, units, loss).map((args) => acquireWithoutReply(...args)), fc.constant(undo())]
        : []),
    ],
    // Else most would be a few commands long.
    { maxCommands, size: 'max' },
  );
