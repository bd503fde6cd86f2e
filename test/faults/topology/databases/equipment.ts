import { ServerClock } from '../../../support/servers/server-clock.js';
import type { Equipment } from '../../../support/servers/server-process.js';
import type { FaultyDisk } from '../database.js';
import { LibraryDisk } from './library-disk.js';

/** What a server is started with so that its clock and its disk can have faults. */
export class FaultyEquipment implements Equipment {
  private constructor(
    readonly disk: (FaultyDisk & LibraryDisk) | undefined,
    private readonly clock: ServerClock | undefined,
  ) {}

  static async create({
    settableClock = false,
  }: {
    readonly settableClock?: boolean;
  }): Promise<FaultyEquipment> {
    const clock = settableClock ? await ServerClock.create() : undefined;
    return new FaultyEquipment(await LibraryDisk.create(), clock);
  }

  /** Environment variables to start the server with. */
  get environment(): Readonly<Record<string, string>> {
    const [disk, clock] = [this.disk?.environment ?? {}, this.clock?.environment ?? {}];
    const libraries = [disk, clock].flatMap(
      ({ LD_PRELOAD = '' }: Record<string, string>) => LD_PRELOAD || [],
    );
    return { ...disk, ...clock, ...(libraries.length > 0 && { LD_PRELOAD: libraries.join(' ') }) };
  }

  jump(ms: number): void {
    if (!this.clock) throw new Error('this server’s clock cannot be set');
    this.clock.jump(ms);
  }

  serves(pid: number): void {
    this.clock?.serves(pid);
  }

  cleanUp(): void {
    this.clock?.cleanUp();
  }
}
