import type { StoreHost } from './lock-store.js';

/** The lock services that have opened a store: an app may give one store to several modules. */
export class StoreHosts {
  private readonly hosts = new Set<StoreHost>();

  add(host: StoreHost): void {
    this.hosts.add(host);
  }

  /** Logs a fact, in the log of the first service. */
  log(sentence: string): void {
    this.first?.log(sentence);
  }

  /** Logs a warning, in the log of the first service. */
  warn(sentence: string): void {
    this.first?.warn(sentence);
  }

  /** See {@link StoreHost.atRisk}. */
  atRisk(finalKey?: string): void {
    for (const host of this.hosts) host.atRisk(finalKey);
  }

  /** See {@link StoreHost.revocationRequested}. */
  revocationRequested(finalKey: string, owner: string): void {
    for (const host of this.hosts) host.revocationRequested(finalKey, owner);
  }

  private get first(): StoreHost | undefined {
    const [first] = this.hosts;
    return first;
  }
}
