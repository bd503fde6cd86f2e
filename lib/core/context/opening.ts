import { textOf } from '../util/describe.js';
import type { LockEventHub, LockLogger } from '../report/lock-events.js';
import type { LockStore, StoreHost } from '../seam/lock-store.js';
import { StoreFailure } from '../seam/store-failure.js';

interface OpeningHost {
  readonly logger: LockLogger;
  readonly events: LockEventHub;
  /** The service as its store sees it. */
  readonly storeHost: StoreHost;
  /** Reports a failure of the store. */
  failed(failure: StoreFailure): void;
}

/** Opens the store of a service: when its app starts, or else with the first request. */
export class Opening {
  private opened: Promise<void> | undefined;

  constructor(
    private readonly store: LockStore,
    private readonly host: OpeningHost,
  ) {}

  /** Opens the store if that has not begun yet. Requests need not wait for it. */
  begin(): void {
    if (!this.opened) this.open().catch((error: unknown) => this.report(error));
  }

  /**
   * Opens the store and logs its warnings. A store that cannot be reached does not stop the start: the first lock then
   * repeats this.
   *
   * @throws {LockConfigurationError} when locks cannot work with this setup of the store
   */
  async atStart(): Promise<void> {
    try {
      await this.openAndDiagnose();
    } catch (error) {
      if (!(error instanceof StoreFailure)) throw error;
      this.host.failed(error);
      const stop = this.host.events.on('acquired', () => {
        stop();
        this.openAndDiagnose().catch((failure: unknown) => this.report(failure));
      });
    }
  }

  private async openAndDiagnose(): Promise<void> {
    await this.open();
    for (const warning of (await this.store.diagnose?.()) ?? []) this.host.logger.warn(warning);
  }

  /** A store that could not be reached is opened again by the next request. Any other error is final. */
  private open(): Promise<void> {
    return (this.opened ??= this.openStore().catch((error: unknown) => {
      if (error instanceof StoreFailure) this.opened = undefined;
      throw error;
    }));
  }

  /** A store that throws at once has failed, too. */
  private async openStore(): Promise<void> {
    await this.store.open(this.host.storeHost);
  }

  private report(error: unknown): void {
    // Each request says by itself that the store cannot be reached.
    if (!(error instanceof StoreFailure)) this.host.logger.warn(textOf(error));
  }
}
