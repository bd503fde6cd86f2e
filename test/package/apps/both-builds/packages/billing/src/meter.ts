import { setImmediate as nextTurn } from 'node:timers/promises';

/** Counts how many are in the same place at the same time. */
export class Meter {
  private inside = 0;
  most = 0;

  async pass(): Promise<void> {
    this.most = Math.max(this.most, ++this.inside);
    for (let turn = 0; turn < 5; turn++) await nextTurn();
    this.inside--;
  }
}
