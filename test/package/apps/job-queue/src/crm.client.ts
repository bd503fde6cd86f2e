import { Injectable } from '@nestjs/common';

/** The service that jobs talk to. What a job asks for is done once the test opens the gate. */
@Injectable()
export class CrmClient {
  static readonly started: string[] = [];
  static running = 0;
  static mostAtOnce = 0;
  private static readonly waiting = new Set<() => void>();
  private static isOpen = false;

  static open(): void {
    this.isOpen = true;
    for (const go of this.waiting) go();
  }

  async sync(tenant: string): Promise<void> {
    CrmClient.started.push(tenant);
    // The other tenant's job is quick.
    if (tenant !== 'acme') return;
    CrmClient.running++;
    CrmClient.mostAtOnce = Math.max(CrmClient.mostAtOnce, CrmClient.running);
    if (!CrmClient.isOpen) await new Promise<void>((resolve) => CrmClient.waiting.add(resolve));
    CrmClient.running--;
  }
}
