import { Module, type DynamicModule } from '@nestjs/common';
import { PAGE, type Page } from './page.js';
import { PageController } from './page.controller.js';

@Module({})
export class PageModule {
  static forRoot(page: Page): DynamicModule {
    return {
      module: PageModule,
      controllers: [PageController],
      providers: [{ provide: PAGE, useValue: page }],
    };
  }
}
