import type { StoreHost } from './store-host.js';

/** The lock services that have opened a store: an app may give one store to several modules. */
export class StoreHosts {
  private readonly hosts = new Set<StoreHost>();

  add(host: StoreHost): void {
    this.hosts.add(host);
  }

  /** Logs a warning, in the log of the first service. */
  warn(sentence: string): void {
    const [first] = this.hosts;
    first?.warn(sentence);
  }

  /** See {@link StoreHost.atRisk}. */
  atRisk(finalKey?: string): void {
    for (const host of this.hosts) host.atRisk(finalKey);
  }
}
