import { Body, Controller, Get, Param, Post } from '@nestjs/common';
import {
  ApiBearerAuth,
  ApiOperation,
  ApiProperty,
  ApiResponse,
  DocumentBuilder,
  SwaggerModule,
  type OpenAPIObject,
} from '@nestjs/swagger';
import { describe, expect, it } from 'vitest';
import { Locked } from 'nest-redis-lock';
import { rootModule, useApps } from '../../support/nest/apps.js';
import { createHttpApp } from '../../support/nest/http.js';
import { useWorld } from '../../support/nest/world.js';

const world = useWorld();
const apps = useApps();

class OrderDto {
  @ApiProperty()
  sku!: string;
}

/** The same two routes, with @Locked where a test wants it. */
const noLock: MethodDecorator = () => undefined;

const controllerWith = (
  above: typeof Locked | (() => MethodDecorator),
  below: typeof Locked | (() => MethodDecorator),
) => {
  @Controller('orders')
  class OrdersController {
    @(above('order:<<sku>>') as MethodDecorator)
    @Post(':sku')
    @ApiOperation({ summary: 'Places an order' })
    @ApiResponse({ status: 201, type: OrderDto })
    @ApiBearerAuth()
    @(below('order:<<sku>>') as MethodDecorator)
    async place(@Param('sku') sku: string, @Body() order: OrderDto): Promise<OrderDto> {
      return { sku: `${sku}${order.sku}` };
    }

    @(above('order:<<sku>>') as MethodDecorator)
    @Get(':sku')
    @(below('order:<<sku>>') as MethodDecorator)
    async read(@Param('sku') sku: string): Promise<string> {
      return sku;
    }
  }
  return OrdersController;
};

const documentOf = async (controller: ReturnType<typeof controllerWith>): Promise<OpenAPIObject> => {
  const app = await createHttpApp(
    apps,
    'express',
    rootModule(world.options(), { controllers: [controller] }),
  );
  return SwaggerModule.createDocument(app, new DocumentBuilder().addBearerAuth().build());
};

describe('the OpenAPI document', () => {
  it.each([
    ['above', Locked, () => noLock],
    ['below', () => noLock, Locked],
  ] as const)('is the same with @Locked %s the decorators as without it', async (_place, above, below) => {
    const locked = await documentOf(controllerWith(above, below));
    const plain = await documentOf(
      controllerWith(
        () => noLock,
        () => noLock,
      ),
    );
    expect(locked.paths['/orders/{sku}']?.post).toMatchObject({
      summary: 'Places an order',
      security: [{ bearer: [] }],
      requestBody: { content: { 'application/json': { schema: { $ref: '#/components/schemas/OrderDto' } } } },
      responses: { 201: { content: { 'application/json': {} } } },
    });
    expect(locked.paths).toEqual(plain.paths);
    expect(locked.components).toEqual(plain.components);
  });
});
