import type { LockCall } from '../../../lib/core/settings/lock-call.js';
import type { LockManager } from '../../../lib/core/service/lock-manager.js';
import type { LockStore } from '../../../lib/core/seam/lock-store.js';
import { CORE } from '../core-api.js';
import { SimClient } from '../client/sim-client.js';
import { Agenda } from '../engine/agenda.js';
import { Chronicle } from '../engine/chronicle.js';
import { Random } from '../engine/random.js';
import { SimProcess } from '../engine/sim-process.js';
import { Link } from '../network/link.js';
import { withServer } from '../server/spare-servers.js';
import { ScaleServer, type Replying } from './scale-server.js';

/** One way through the network, in ms. */
export const LATENCY_MS: readonly [number, number] = [0.2, 0.5];
export const TIMEOUT_MS = 2_000;
export const KEY_PREFIX = 'lock:';

/** Clocks of machines differ by no more than this, in ms per ms. */
const DRIFT = 0.0001;

/** One process with the real core and store. */
export interface Member {
  readonly process: SimProcess;
  readonly manager: LockManager;
  /** Number of connections that are open. */
  readonly openConnections: number;
}

/** Creates the store of a process. `connect` returns a new client, and counts its connection. */
export type MakeStore = (
  process: SimProcess,
  connect: (at: string, options: object) => SimClient,
) => LockStore;

const ofOneServer: MakeStore = (process, connect) =>
  new CORE.RedisStore({
    redis: (role, options) => connect(role, options),
    commandTimeoutMs: TIMEOUT_MS,
    runtime: process,
  });

/** Processes and a server on virtual time. */
export class Crowd {
  readonly agenda = new Agenda();
  private readonly chronicle = new Chronicle();

  private constructor(
    private readonly seed: number,
    serverOf: (agenda: Agenda) => ScaleServer,
  ) {
    this.server = serverOf(this.agenda);
  }

  readonly server: ScaleServer;

  /** Runs `use` with a server for it alone. */
  static with<T>(seed: number, use: (crowd: Crowd) => Promise<T>, replying?: Replying): Promise<T> {
    return withServer(async (borrowed) => {
      const crowd = new Crowd(seed, (agenda) => new ScaleServer(agenda, borrowed, replying));
      const result = await use(crowd);
      crowd.server.close();
      return result;
    });
  }

  /** Adds a process. Names with four characters give ids as long as real ones. */
  add(number: number, makeStore: MakeStore = ofOneServer): Member {
    const name = String(number).padStart(4, '0');
    const { agenda, chronicle, server, seed } = this;
    const randomOf = (what: string): Random => new Random(`${what} of ${name} of ${seed}`);
    const rate = 1 + randomOf('clock').between(-DRIFT, DRIFT) / 2;
    const process = new SimProcess(name, agenda, chronicle, randomOf('timers'), rate, false);
    const links: Link[] = [];
    const store = makeStore(process, (at, options) => {
      const random = randomOf(`${at} ${links.length}`);
      const link = new Link(agenda, process, server, random, LATENCY_MS, TIMEOUT_MS);
      links.push(link);
      return new SimClient(process, link, options);
    });
    const silent = { warn: () => undefined, log: () => undefined };
    const settings = { ...CORE.DEFAULT_SETTINGS, keyPrefix: KEY_PREFIX };
    return {
      process,
      manager: new CORE.LockManager(store, settings, silent, process),
      get openConnections() {
        return links.filter(({ session }) => session?.openHere).length;
      },
    };
  }

  addMany(count: number, makeStore?: MakeStore): readonly Member[] {
    return Array.from({ length: count }, (_none, i) => this.add(i + 1, makeStore));
  }
}

/** Kind of lock, and how many owners it may have. */
export interface Wanted {
  readonly kind: LockCall['kind'];
  readonly permits?: number;
}

/** Returns the options of a call that waits for as long as it takes. */
export const patient = ({ manager }: Member, { kind, permits }: Wanted): LockCall => ({
  ...CORE.defaultCall(manager.settings),
  waitMs: Infinity,
  kind,
  permits,
});
