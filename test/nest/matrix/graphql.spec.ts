import { Injectable, Scope, UseGuards } from '@nestjs/common';
import { ApolloDriver, type ApolloDriverConfig } from '@nestjs/apollo';
import {
  Args,
  Field,
  GraphQLModule,
  Mutation,
  ObjectType,
  Parent,
  Query,
  ResolveField,
  Resolver,
} from '@nestjs/graphql';
import { describe, expect, it } from 'vitest';
import { Locked } from 'nest-redis-lock';
import { rootModule, useApps } from '../../support/nest/apps.js';
import { startHttp, type HttpClient } from '../../support/nest/http.js';
import { QuotaGuard } from '../../support/nest/quota-guard.js';
import { useWorld } from '../../support/nest/world.js';

const world = useWorld();
const apps = useApps();

@ObjectType()
class Order {
  @Field(() => String)
  id!: string;

  @Field(() => String)
  above?: string;

  @Field(() => String)
  below?: string;
}

@Resolver(() => Order)
class OrderResolver {
  @Query(() => Order)
  @Locked('order:<<id>>')
  async queryAbove(@Args('id') id: string): Promise<Order> {
    await world.work(`order:${id}`);
    return { id };
  }

  @Locked('order:<<id>>')
  @Query(() => Order)
  async queryBelow(@Args('id') id: string): Promise<Order> {
    await world.work(`order:${id}`);
    return { id };
  }

  @Query(() => Order)
  async open(@Args('id') id: string): Promise<Order> {
    return { id };
  }

  @Query(() => String)
  @UseGuards(QuotaGuard)
  guarded(): string {
    return 'done';
  }

  @Mutation(() => String)
  @Locked('order:<<id>>')
  async mutationAbove(@Args('id') id: string): Promise<string> {
    return world.work(`order:${id}`);
  }

  @Locked('order:<<id>>')
  @Mutation(() => String)
  async mutationBelow(@Args('id') id: string): Promise<string> {
    return world.work(`order:${id}`);
  }

  @ResolveField(() => String)
  @Locked('order:<<order.id>>')
  async above(@Parent() order: Order): Promise<string> {
    return world.work(`order:${order.id}`);
  }

  @Locked('order:<<order.id>>')
  @ResolveField(() => String)
  async below(@Parent() order: Order): Promise<string> {
    return world.work(`order:${order.id}`);
  }
}

@Injectable({ scope: Scope.REQUEST })
@Resolver()
class ScopedResolver {
  @Query(() => String)
  @Locked('order:<<id>>')
  async scopedAbove(@Args('id') id: string): Promise<string> {
    return world.work(`order:${id}`);
  }

  @Locked('order:<<id>>')
  @Query(() => String)
  async scopedBelow(@Args('id') id: string): Promise<string> {
    return world.work(`order:${id}`);
  }
}

const start = (waitMs = 0): Promise<HttpClient> => {
  const graphql = GraphQLModule.forRoot<ApolloDriverConfig>({
    driver: ApolloDriver,
    autoSchemaFile: true,
    // Nest runs interceptors around fields only when told to, so that is what the mapping of errors there needs.
    fieldResolverEnhancers: ['interceptors'],
  });
  const providers = [OrderResolver, ScopedResolver, QuotaGuard];
  return startHttp(apps, 'express', rootModule(world.options({ waitMs }), { imports: [graphql], providers }));
};

interface Answer {
  readonly data: Record<string, unknown> | null;
  readonly errors?: readonly { readonly message: string; readonly extensions: Record<string, unknown> }[];
}

const ask = async (http: HttpClient, query: string): Promise<Answer> =>
  (await (await http.post('/graphql', { query })).json()) as Answer;

const isRefused = async (outcome: Promise<unknown>): Promise<void> => {
  const { errors } = (await outcome) as Answer;
  expect(errors).toHaveLength(1);
  expect(errors?.[0]?.extensions).toMatchObject({ code: 'LOCK_TAKEN', status: 423 });
  expect(JSON.stringify(errors)).not.toContain('order:7');
};

describe('a GraphQL resolver', () => {
  it.each([
    ['a query, @Query above @Locked', '{ queryAbove(id: "7") { id } }'],
    ['a query, @Query below @Locked', '{ queryBelow(id: "7") { id } }'],
    ['a mutation, @Mutation above @Locked', 'mutation { mutationAbove(id: "7") }'],
    ['a mutation, @Mutation below @Locked', 'mutation { mutationBelow(id: "7") }'],
    ['a field, @ResolveField above @Locked', '{ open(id: "7") { id above } }'],
    ['a field, @ResolveField below @Locked', '{ open(id: "7") { id below } }'],
    ['a request-scoped one, @Query above @Locked', '{ scopedAbove(id: "7") }'],
    ['a request-scoped one, @Query below @Locked', '{ scopedBelow(id: "7") }'],
  ])('is locked, and answers with code and status: %s', async (_what, query) => {
    const http = await start();
    await world.expectLocked('order:7', () => ask(http, query), isRefused);
    const { data, errors } = await ask(http, query);
    expect(errors).toBeUndefined();
    expect(Object.values(data ?? {})).toHaveLength(1);
  });

  it('answers with code and status when a guard throws a lock error', async () => {
    const http = await start();
    const free = await world.takeElsewhere('quota:bob');
    await isRefused(ask(http, '{ guarded }'));
    await free();
    expect((await ask(http, '{ guarded }')).data).toEqual({ guarded: 'done' });
  });

  it('gives two fields of one request the same lock in turn', async () => {
    const http = await start(5_000);
    world.takeRuns();
    const { errors } = await ask(http, '{ open(id: "7") { above below } }');
    expect(errors).toBeUndefined();
    expect(world.takeRuns()).toEqual([
      { key: 'order:7', locked: true },
      { key: 'order:7', locked: true },
    ]);
  });
});
