import {
  Body,
  Controller,
  Get,
  Header,
  HttpCode,
  Injectable,
  Param,
  ParseIntPipe,
  Post,
  Query,
  Scope,
  SetMetadata,
  UseGuards,
  UseInterceptors,
  UsePipes,
  type CallHandler,
  type CanActivate,
  type ExecutionContext,
  type NestInterceptor,
  type PipeTransform,
} from '@nestjs/common';
import { Reflector } from '@nestjs/core';
import { map, type Observable } from 'rxjs';
import { describe, expect, it } from 'vitest';
import { Locked } from 'nest-redis-lock';
import { rootModule, useApps } from '../../support/nest/apps.js';
import { answers423, PLATFORMS, startHttp } from '../../support/nest/http.js';
import { useWorld } from '../../support/nest/world.js';

const world = useWorld();
const apps = useApps();

const Role = (role: string) => SetMetadata('role', role);

@Injectable()
class RoleGuard implements CanActivate {
  constructor(private readonly reflector: Reflector) {}

  canActivate(context: ExecutionContext): boolean {
    return this.reflector.get<string>('role', context.getHandler()) === 'seller';
  }
}

@Injectable()
class Wrapping implements NestInterceptor {
  intercept(_context: ExecutionContext, next: CallHandler): Observable<unknown> {
    return next.handle().pipe(map((result) => ({ wrapped: result })));
  }
}

@Injectable()
class Trimming implements PipeTransform {
  transform(value: unknown): unknown {
    return typeof value === 'string' ? value.trim() : value;
  }
}

/** Every decorator of Nest once above and once below @Locked. */
@Controller('below')
class Below {
  @Locked('item:<<id>>')
  @Post(':id')
  @HttpCode(202)
  @Header('x-below', 'yes')
  @UseGuards(RoleGuard)
  @Role('seller')
  @UseInterceptors(Wrapping)
  @UsePipes(Trimming)
  async sell(
    @Param('id', ParseIntPipe) id: number,
    @Body('note') note: string,
    @Query('color') color?: string,
  ): Promise<object> {
    return { done: await world.work(`item:${id}`), idIs: typeof id, note, color };
  }

  @Locked('guarded')
  @Get('guarded')
  @UseGuards(RoleGuard)
  @Role('buyer')
  async guarded(): Promise<string> {
    return world.work('guarded');
  }
}

@Controller('above')
class Above {
  @Post(':id')
  @HttpCode(202)
  @Header('x-above', 'yes')
  @UseGuards(RoleGuard)
  @Role('seller')
  @UseInterceptors(Wrapping)
  @UsePipes(Trimming)
  @Locked('item:<<id>>')
  async sell(
    @Param('id', ParseIntPipe) id: number,
    @Body('note') note: string,
    @Query('color') color?: string,
  ): Promise<object> {
    return { done: await world.work(`item:${id}`), idIs: typeof id, note, color };
  }

  @Get('guarded')
  @UseGuards(RoleGuard)
  @Role('buyer')
  @Locked('guarded')
  async guarded(): Promise<string> {
    return world.work('guarded');
  }
}

@Controller({ path: 'scoped', scope: Scope.REQUEST })
class Scoped {
  private readonly made = Math.random();

  @Get('above/:id')
  @Locked('item:<<id>>')
  async above(@Param('id') id: string): Promise<object> {
    return { done: await world.work(`item:${id}`), made: this.made };
  }

  @Locked('item:<<id>>')
  @Get('below/:id')
  async below(@Param('id') id: string): Promise<object> {
    return { done: await world.work(`item:${id}`), made: this.made };
  }
}

abstract class Crud {
  @Get(':id')
  @Locked('item:<<id>>')
  async read(@Param('id') id: string): Promise<string> {
    return world.work(`item:${id}`);
  }
}

@Controller('inherited')
class Inherited extends Crud {}

const module = () => rootModule(world.options(), { controllers: [Below, Above, Scoped, Inherited] });

describe.each(PLATFORMS)('a controller on %s', (platform) => {
  it.each(['below', 'above'])('is locked, and keeps what decorators %s @Locked set', async (place) => {
    const http = await startHttp(apps, platform, module());
    const post = () => http.post(`/${place}/7?color=%20red`, { note: '  hello ' });
    await world.expectLocked('item:7', post, answers423);

    const answer = await post();
    expect(answer.status).toBe(202);
    expect(answer.headers.get(`x-${place}`)).toBe('yes');
    expect(await answer.json()).toEqual({
      wrapped: { done: 'done', idIs: 'number', note: 'hello', color: 'red' },
    });
  });

  it.each(['below', 'above'])(
    'asks a guard %s @Locked first: a refused call locks nothing',
    async (place) => {
      const http = await startHttp(apps, platform, module());
      const free = await world.takeElsewhere('guarded');
      world.takeRuns();
      expect((await http.get(`/${place}/guarded`)).status).toBe(403);
      await free();
      expect(world.takeRuns()).toEqual([]);
    },
  );

  it.each(['below', 'above'])('lets a pipe %s @Locked refuse an argument first', async (place) => {
    const http = await startHttp(apps, platform, module());
    expect((await http.post(`/${place}/seven`, {})).status).toBe(400);
  });

  it.each(['below', 'above'])('is locked when it is request-scoped, route %s @Locked', async (place) => {
    const http = await startHttp(apps, platform, module());
    const get = () => http.get(`/scoped/${place}/7`);
    await world.expectLocked('item:7', get, answers423);
    const made = await Promise.all(
      [await get(), await get()].map(async (answer) => ((await answer.json()) as { made: number }).made),
    );
    expect(new Set(made).size, 'controllers made for two requests').toBe(2);
  });

  it('is locked when it inherits its route', async () => {
    const http = await startHttp(apps, platform, module());
    await world.expectLocked('item:7', () => http.get('/inherited/7'), answers423);
  });
});
