import { ApolloDriver, type ApolloDriverConfig } from '@nestjs/apollo';
import {
  Args,
  Field,
  GraphQLModule,
  ObjectType,
  Parent,
  Query,
  ResolveField,
  Resolver,
} from '@nestjs/graphql';
import { Locked } from 'nest-redis-lock';
import { afterEach, describe, expect, it } from 'vitest';
import { hashSlot, tagOfSlot } from '../../lib/stores/redis/hash-slot.js';
import { useApps, rootModule } from '../support/nest/apps.js';
import { startHttp } from '../support/nest/http.js';
import { useWorld } from '../support/nest/world.js';
import { TRANSPORTS } from './support/transports.js';

/*
 * What leaves the process. That codes and statuses are right is proven in test/nest/errors; here it is what strangers
 * cannot read out of an answer, when Redis has hostile things to say.
 */
const world = useWorld();
afterEach(async () => {
  await world.redis.flushall();
});
const apps = useApps();

const ID = 'alice@example.org';
const HOLD = `lock:user:${ID}`;
const FENCE = `nest_redis_lock:fence:{${tagOfSlot(hashSlot(HOLD))}}`;

/** Nothing of a key, an owner, a value, or of what Redis said. */
const SECRET = /alice|user:|lock:|fence|owner|WRONGTYPE|hget|hset|evalsha|secret/i;

interface Trouble {
  readonly code: string;
  readonly make: () => Promise<unknown>;
  /** What the client asks for, where it is not the user in question. */
  readonly id?: string;
}

const TROUBLES: Readonly<Record<string, Trouble>> = {
  'somebody holds the lock': {
    code: 'LOCK_TAKEN',
    make: () => world.redis.hset(HOLD, 'the-owner-is-secret', '1'),
  },
  'something else is in its place': {
    code: 'LOCK_STORE_FAILED',
    make: () => world.redis.set(HOLD, 'secret'),
  },
  'the fencing tokens are none': {
    code: 'LOCK_STORE_FAILED',
    make: () => world.redis.set(FENCE, 'secret'),
  },
  'the fencing tokens are another type': {
    code: 'LOCK_STORE_FAILED',
    make: () => world.redis.rpush(FENCE, 'secret'),
  },
  'the argument is too long for a key': {
    code: 'LOCK_KEY_INVALID',
    make: () => Promise.resolve(),
    id: ID.repeat(4_000),
  },
  'the argument is nothing': {
    code: 'LOCK_KEY_INVALID',
    make: () => Promise.resolve(),
    id: '',
  },
};

describe.each(Object.entries(TRANSPORTS))('an error that leaves over %s', (_transport, start) => {
  it('has its code and not a word of the key, the owner or what Redis said', async () => {
    const request = await start(apps, world.options());
    expect(await request(ID)).toContain(`served ${ID}`);
    for (const [what, { make, code, id = ID }] of Object.entries(TROUBLES)) {
      await world.redis.flushall();
      await make();
      const response = await request(id);
      expect(response, what).toContain(code);
      expect(response, what).not.toMatch(SECRET);
      expect(response.length, what).toBeLessThan(10_000);
    }
  });
});

describe('without the interceptor', () => {
  it.each(Object.entries(TRANSPORTS).filter(([transport]) => transport !== 'GraphQL'))(
    'Nest itself says nothing of it over %s',
    async (_transport, start) => {
      const request = await start(apps, world.options({ interceptor: false }));
      for (const [what, { make, id = ID }] of Object.entries(TROUBLES)) {
        await world.redis.flushall();
        await make();
        const response = await request(id);
        expect(response, what).toContain('Internal server error');
        expect(response, what).not.toMatch(SECRET);
      }
    },
  );
});

@ObjectType()
class Profile {
  @Field(() => String)
  id!: string;

  @Field(() => String)
  name?: string;
}

@Resolver(() => Profile)
class ProfileResolver {
  @Query(() => Profile)
  @Locked('user:<<id>>')
  async locked(@Args('id') id: string): Promise<Profile> {
    return { id };
  }

  @Query(() => Profile)
  async profile(@Args('id') id: string): Promise<Profile> {
    return { id };
  }

  @ResolveField(() => String)
  @Locked('user:<<profile.id>>')
  async name(@Parent() profile: Profile): Promise<string> {
    return `name of ${profile.id}`;
  }
}

describe('GraphQL shows the message of any error, the key with it, as SECURITY.md warns,', () => {
  it.each([
    ['with interceptor: false', 'locked', 'id', false],
    ['in field resolvers that run without interceptors', 'profile', 'name', true],
  ])('%s', async (_where, query, field, interceptor) => {
    const graphql = GraphQLModule.forRoot<ApolloDriverConfig>({ driver: ApolloDriver, autoSchemaFile: true });
    const metadata = { imports: [graphql], providers: [ProfileResolver] };
    const http = await startHttp(apps, 'express', rootModule(world.options({ interceptor }), metadata));
    await world.redis.hset(HOLD, 'the-owner-is-secret', '1');
    const response = await http.post('/graphql', { query: `{ ${query}(id: "${ID}") { ${field} } }` });
    const text = await response.text();
    expect(text).toContain(`user:${ID}`);
    expect(text).not.toContain('the-owner-is-secret');
  });
});
