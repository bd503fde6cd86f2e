import { timingSafeEqual } from 'node:crypto';
import {
  ForbiddenException,
  Inject,
  Injectable,
  NotFoundException,
  type CanActivate,
  type ExecutionContext,
} from '@nestjs/common';
import { PAGE, type Page } from './page.js';

/** What the guard reads of a request. */
interface Request {
  readonly method: string;
  readonly params: Readonly<Record<string, string | undefined>>;
  readonly headers: Readonly<Record<string, string | undefined>>;
  readonly socket: { readonly localPort?: number; readonly remoteAddress?: string };
}

const LOOPBACK = '127.0.0.1';

/**
 * Lets in a browser on this machine that has the address of the page. The buttons kill processes, so a page of another site
 * must not press them. It could use a name that leads here, which `Host` shows, or send a form, which `Origin` shows.
 */
@Injectable()
export class PageGuard implements CanActivate {
  constructor(@Inject(PAGE) private readonly page: Page) {}

  canActivate(context: ExecutionContext): boolean {
    const { method, params, headers, socket } = context.switchToHttp().getRequest<Request>();
    const hosts = [LOOPBACK, 'localhost'].map((name) => `${name}:${socket.localPort}`);
    if (socket.remoteAddress !== LOOPBACK)
      throw new ForbiddenException('Only this machine may open the page.');
    if (!hosts.includes(headers['host'] ?? ''))
      throw new ForbiddenException('The page is not known under this host name.');
    if (!this.isToken(params['token'] ?? '')) throw new NotFoundException('There is no such page.');
    const { origin } = headers;
    const isOwn = origin === `http://${headers['host']}`;
    if (method === 'GET' ? origin !== undefined && !isOwn : !isOwn)
      throw new ForbiddenException('Only the page itself may send this.');
    return true;
  }

  private isToken(text: string): boolean {
    const [given, own] = [Buffer.from(text), Buffer.from(this.page.token)];
    return given.length === own.length && timingSafeEqual(given, own);
  }
}
