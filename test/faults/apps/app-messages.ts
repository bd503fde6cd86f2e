import type { WorkerServers, WorkerSettings } from '../workload/worker-messages.js';

/** What the process of the apps is started with, as its one argument in JSON. */
export interface AppsSetup {
  readonly history: string;
  /** Where Redis is: no line is between the apps and the servers. */
  readonly redis: WorkerServers;
  readonly library?: string;
  readonly settings: WorkerSettings;
}

/** The slots of a cluster from one on and before another. */
export interface Slots {
  readonly from: number;
  readonly to: number;
}

/** What connection an app has to the servers that will fail. */
export type Connection = 'no connection' | 'idle' | 'busy';

export interface AppPlan {
  /** The name of the process in the history; unique. */
  readonly name: string;
  readonly connection: Connection;
  /** Asks from the fault on; otherwise only when writes are accepted again. */
  readonly requestsMeanwhile: boolean;
}

export type ToApps =
  /** Starts apps and brings each into its state. Answered by `opened`. */
  | {
      readonly type: 'open';
      readonly round: string;
      readonly plans: readonly AppPlan[];
      /** Of the keys that the apps ask for; undefined: any key. */
      readonly slots?: Slots;
      /** Of keys on servers that do not fail; undefined: there are none. */
      readonly elsewhere?: Slots;
    }
  /** The fault begins. */
  | { readonly type: 'fault' }
  /** These servers accept writes now. A lock counts that is on each of them. */
  | { readonly type: 'accepting'; readonly ports: readonly number[] }
  /** Closes the apps of `open`. Answered by `closed`. */
  | { readonly type: 'close' };

export type FromApps =
  | { readonly type: 'ready' }
  /** The apps that are in their states. */
  | { readonly type: 'opened'; readonly names: readonly string[] }
  /** An app acquired a key. */
  | { readonly type: 'served'; readonly name: string; readonly at: number }
  | { readonly type: 'closed' };
