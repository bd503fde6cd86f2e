import { until } from '../../support/async.js';
import { TestWorker } from '../../support/worker.js';
import type { HistoryEvent } from '../../checker/history.js';
import { HistoryReader } from '../history/history-file.js';
import { clockEnvironment, labNow } from '../history/lab-clock.js';
import type { Scribe } from '../history/scribe.js';
import type { WorkerServers, WorkerSettings } from '../workload/worker-messages.js';
import type { AppPlan, AppsSetup, FromApps, Slots, ToApps } from './app-messages.js';
import { BareConnections } from './bare-connection.js';
import { WriteProbe } from './write-probe.js';

/** Long enough for a server that is well, on a machine that is busy with other things. */
const COMMAND_TIMEOUT_MS = 1_000;
/** Two command time-outs: the second is slack of the measurement. */
const LIMIT_MS = 2 * COMMAND_TIMEOUT_MS;
/** How much longer an app is waited for: to know by how much it is late. */
const LATE_MS = 500;
/** How long a fault waits for servers that accept writes: they may need what the fault has taken from them. */
const UNACCEPTED_MS = 500;
const STARTED_MS = 60_000;
/** How long the apps may take to be in their states, and to close. */
const OPENED_MS = 30_000;

const APPS = new URL('./apps.process.ts', import.meta.url);

/** Sets of apps, one for each fault in turn. Each has all states of a connection. */
const PLANS: readonly (readonly Omit<AppPlan, 'name'>[])[] = [
  [
    { connection: 'no connection', requestsMeanwhile: true },
    { connection: 'idle', requestsMeanwhile: false },
    { connection: 'busy', requestsMeanwhile: true },
  ],
  [
    { connection: 'no connection', requestsMeanwhile: false },
    { connection: 'idle', requestsMeanwhile: true },
    { connection: 'busy', requestsMeanwhile: true },
  ],
];

/** How the apps of a topology ask its servers, and how the laboratory does. */
export interface AppServers {
  /** See {@link Accepting}; of the servers of this group. */
  accepting(bare: BareConnections, group: number): Promise<readonly number[] | undefined>;
  /** Which keys are in a group; undefined: all. */
  readonly slotsOf?: (group: number) => Slots;
  readonly groups?: number;
}

export interface AppsOptions {
  readonly servers: AppServers & { readonly redis: WorkerServers };
  /** Where the apps write their history. */
  readonly history: string;
  readonly library?: string | undefined;
  readonly settings: WorkerSettings;
  readonly scribe: Scribe;
}

/** What a fault tells the apps. */
export interface Course {
  /** Everything is done that the apps have to get over, and no server takes over from another. */
  struck(): void;
  /** Resolves when each app has acquired a key again or is late, or when no server accepts writes for a while. */
  recovered(): Promise<void>;
}

/** For a fault that no apps see. */
export const UNOBSERVED: Course = { struck: () => undefined, recovered: () => Promise.resolve() };

/** Apps that are there before a fault, with and without connections, and acquire keys after it. */
export class Apps implements AsyncDisposable {
  private process: TestWorker<ToApps, FromApps> | undefined;
  private readonly history: HistoryReader;
  private count = 0;
  private isBusy = false;

  constructor(private readonly options: AppsOptions) {
    this.history = new HistoryReader(options.history);
  }

  /** Starts the process of the apps, if it does not run yet. */
  start(): TestWorker<ToApps, FromApps> {
    const { servers, settings, library } = this.options;
    const setup: AppsSetup = {
      history: this.options.history,
      redis: servers.redis,
      settings: { ...settings, commandTimeoutMs: COMMAND_TIMEOUT_MS },
      ...(library !== undefined && { library }),
    };
    const started = () =>
      TestWorker.start<ToApps, FromApps>(APPS, { args: [JSON.stringify(setup)], env: clockEnvironment });
    return (this.process ??= started());
  }

  /** Inflicts a fault while apps are there. A fault that comes while another is observed has no apps of its own. */
  async during(
    fault: { readonly what: string; readonly group: number; readonly round: string },
    work: (course: Course) => Promise<void>,
  ): Promise<void> {
    if (this.isBusy) return work(UNOBSERVED);
    this.isBusy = true;
    try {
      await this.inflict(fault, work);
    } finally {
      this.isBusy = false;
    }
  }

  private async inflict(
    { what, group, round }: { readonly what: string; readonly group: number; readonly round: string },
    work: (course: Course) => Promise<void>,
  ): Promise<void> {
    const { servers, scribe } = this.options;
    const plans = await this.open(group, round);
    const process = this.start();
    const bare = new BareConnections();
    const changed = (ports: readonly number[]): void => process.send({ type: 'accepting', ports });
    const probe = new WriteProbe(() => servers.accepting(bare, group), changed);
    try {
      await until(() => probe.ports, { timeoutMs: OPENED_MS, what: `writes are accepted before "${what}"` });
      probe.outages.length = 0;
      let at = labNow();
      let isStruck = false;
      const struck = (): void => {
        if (isStruck) return;
        isStruck = true;
        if (!probe.ports) return;
        if (probe.outages.length === 0) at = labNow();
        changed(probe.ports);
      };
      const recovered = (timeoutMs = UNACCEPTED_MS) => this.recovered(plans, probe, at, timeoutMs);
      process.send({ type: 'fault' });
      await work({ struck, recovered });
      struck();
      await recovered(OPENED_MS);
      const apps = plans.map(({ name, connection, requestsMeanwhile }) => {
        const requests = requestsMeanwhile ? 'asks from the fault on' : 'asks when writes are accepted again';
        return { process: name, connection: `${connection}, ${requests}` };
      });
      const outages = [...probe.outages];
      scribe.write({ type: 'failover', at, what, outages, limitMs: LIMIT_MS, apps });
    } finally {
      await probe.stop();
      bare.close();
      process.send({ type: 'close' });
      await process.next('closed', { timeoutMs: OPENED_MS });
    }
  }

  private async open(group: number, round: string): Promise<readonly AppPlan[]> {
    const { slotsOf, groups = 1 } = this.options.servers;
    const number = ++this.count;
    const set = PLANS[number % PLANS.length]!;
    const plans = set.map((plan, i) => ({ ...plan, name: `app${number}.${i + 1}` }));
    const process = this.start();
    if (process.all('ready').length === 0) await process.next('ready', { timeoutMs: STARTED_MS });
    const slots = slotsOf && { slots: slotsOf(group), elsewhere: slotsOf((group + 1) % groups) };
    process.send({ type: 'open', round, plans, ...slots });
    const { names } = await process.next('opened', { timeoutMs: OPENED_MS });
    return plans.filter(({ name }) => names.includes(name));
  }

  /** Resolves when each app was served since writes are accepted again, or is late. */
  private async recovered(
    plans: readonly AppPlan[],
    probe: WriteProbe,
    at: number,
    timeoutMs: number,
  ): Promise<void> {
    let acceptedAt = labNow();
    const isOver = (): boolean => {
      if (!probe.ports) return labNow() > acceptedAt + timeoutMs;
      acceptedAt = labNow();
      const overAt = Math.max(at, probe.outages.at(-1)?.to ?? at);
      if (labNow() > overAt + LIMIT_MS + LATE_MS) return true;
      const served = new Set(
        this.start()
          .all('served')
          .filter((one) => one.at >= overAt)
          .map(({ name }) => name),
      );
      return plans.every(({ name }) => served.has(name));
    };
    await until(isOver, { timeoutMs: STARTED_MS, what: 'writes are accepted again' });
  }

  takeHistory(): HistoryEvent[] {
    return this.history.read();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.process?.[Symbol.asyncDispose]();
    this.history.close();
  }
}
