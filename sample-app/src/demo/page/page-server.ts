import { randomBytes } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { ValidationPipe, type INestApplication } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import type { Page } from './page.js';
import { PageModule } from './page.module.js';
import { readPageFiles } from './page-files.js';

const TOKEN_BYTES = 18;
/** How long the last snapshot may take to a browser on this machine, in ms. */
const LAST_MS = 50;

const HEADERS = {
  'content-security-policy':
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; " +
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
  'x-content-type-options': 'nosniff',
  'cross-origin-resource-policy': 'same-origin',
  'referrer-policy': 'no-referrer',
  'cache-control': 'no-store',
};

interface Response {
  set(headers: typeof HEADERS): void;
}

export interface PageServerOptions extends Pick<Page, 'board' | 'actions'> {
  /** Port; 0: any free port. Default: 0. */
  readonly port?: number;
  /** Secret in the address. Default: a new one. */
  readonly token?: string;
  /** Folder of the compiled page. Default: the one beside this file. */
  readonly folder?: URL;
}

/** Serves the page, on the loopback interface only. */
export class PageServer implements AsyncDisposable {
  private constructor(
    private readonly app: INestApplication,
    private readonly page: Page,
    /** Address of the page. */
    readonly url: string,
  ) {}

  static async start(options: PageServerOptions): Promise<PageServer> {
    const { board, actions, port = 0, folder } = options;
    const token = options.token ?? randomBytes(TOKEN_BYTES).toString('base64url');
    const page: Page = { board, actions, token, files: readPageFiles(folder) };
    const app = await NestFactory.create(PageModule.forRoot(page), {
      abortOnError: false,
      forceCloseConnections: true,
      logger: ['error', 'fatal'],
    });
    app.use((_request: unknown, response: Response, next: () => void) => {
      response.set(HEADERS);
      next();
    });
    app.useGlobalPipes(new ValidationPipe({ whitelist: true, forbidNonWhitelisted: true }));
    await app.listen(port, '127.0.0.1');
    return new PageServer(app, page, `${await app.getUrl()}/${token}/`);
  }

  /** Sends the last snapshot, and ends all connections. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.page.board.end();
    await sleep(LAST_MS);
    await this.close();
  }

  /** Ends all connections. */
  close(): Promise<void> {
    return this.app.close();
  }
}
