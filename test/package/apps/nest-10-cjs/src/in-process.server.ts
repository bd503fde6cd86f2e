import { Server, type CustomTransportStrategy } from '@nestjs/microservices';
import { lastValueFrom } from 'rxjs';

/** A transport without a network: what is asked is answered by the handler in this process. */
export class InProcessServer extends Server implements CustomTransportStrategy {
  listen(ready: () => void): void {
    ready();
  }

  close(): void {
    this.messageHandlers.clear();
  }

  /** Rejects with what a client would be sent. */
  async ask(pattern: string, data: unknown): Promise<unknown> {
    const handler = this.getHandlerByPattern(pattern);
    if (!handler) throw new Error(`no handler for ${pattern}`);
    return lastValueFrom(this.transformToObservable(await handler(data)));
  }
}
