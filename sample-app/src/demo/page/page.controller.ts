import {
  Body,
  ConflictException,
  Controller,
  Get,
  HttpCode,
  Inject,
  NotFoundException,
  Param,
  Post,
  Req,
  Res,
  Sse,
  StreamableFile,
  UseGuards,
  type MessageEvent,
} from '@nestjs/common';
import { map, type Observable } from 'rxjs';
import { ActionRefused, isActionName } from './actions.js';
import { frames } from './frames.js';
import { OpenSaleDto } from './open-sale.dto.js';
import { PAGE, type Page } from './page.js';
import { PageGuard } from './page.guard.js';

const INDEX = 'index.html';
/** How soon a browser that has lost the stream connects again, in ms. */
const RETRY_MS = 500;

@Controller(':token')
@UseGuards(PageGuard)
export class PageController {
  constructor(@Inject(PAGE) private readonly page: Page) {}

  @Get()
  index(
    @Req() { path }: { readonly path: string },
    @Res({ passthrough: true }) response: { redirect(url: string): void },
  ): StreamableFile | undefined {
    if (path.endsWith('/')) return this.file(INDEX);
    // The addresses in the page are relative to its folder.
    response.redirect(`${path}/`);
    return undefined;
  }

  @Sse('events')
  events(): Observable<MessageEvent> {
    return frames(this.page.board).pipe(map((data) => ({ data, retry: RETRY_MS })));
  }

  @Get(':file')
  file(@Param('file') name: string): StreamableFile {
    const file = this.page.files.get(name);
    if (!file) throw new NotFoundException('There is no such file.');
    return new StreamableFile(file.content, { type: file.type });
  }

  @Post('actions/:action')
  @HttpCode(204)
  async act(@Param('action') action: string, @Body() body?: OpenSaleDto): Promise<void> {
    if (!isActionName(action)) throw new NotFoundException('There is no such button.');
    const { actions } = this.page;
    if (!actions)
      throw new ConflictException('This page only shows a run. npm start -- --serve has buttons.');
    try {
      await actions.act(action, body?.strategy ?? 'locked');
    } catch (error) {
      if (error instanceof ActionRefused) throw new ConflictException(error.message);
      throw error;
    }
  }
}
