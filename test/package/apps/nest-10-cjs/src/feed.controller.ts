import { Controller, Get } from '@nestjs/common';
import { Locked } from 'nest-redis-lock';
import { NEVER, Observable } from 'rxjs';

@Controller('feed')
export class FeedController {
  /** Has nothing to tell, and never ends by itself. */
  @Get()
  @Locked('feed', { waitMs: 0 })
  live(): Observable<never> {
    return NEVER;
  }

  @Get('later')
  @Locked('feed', { waitMs: 0 })
  async liveLater(): Promise<Observable<never>> {
    return NEVER;
  }
}
