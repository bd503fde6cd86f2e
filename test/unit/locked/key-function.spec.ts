import 'reflect-metadata';
import { defer, from, isObservable, lastValueFrom, Observable, of } from 'rxjs';
import { describe, expect, it } from 'vitest';
import { currentLease, Limited, Locked } from 'nest-redis-lock';
import { lockedInstance } from './fixture.js';

describe('a key function', () => {
  it.each([
    ['of a promise', 'promise'],
    ['of an Observable', 'observable'],
    ['of a generator', 'generator'],
    ['of permits', 'limited'],
    ['that is an arrow function, which has the arguments alone', 'arrow'],
  ] as const)('has the instance as this: %s', async (_what, method) => {
    class Job {
      readonly name = 'invoices';

      @Locked(function (this: Job, id: string) {
        return [`job:${this.name}:${id}`];
      })
      async promise(_id: string): Promise<string> {
        return currentLease().key;
      }

      @Locked(function (this: Job, id: string) {
        return `job:${this.name}:${id}`;
      })
      observable(_id: string): Observable<string> {
        return defer(() => of(currentLease().key));
      }

      @Locked(function (this: Job, id: string) {
        return `job:${this.name}:${id}`;
      })
      async *generator(_id: string): AsyncGenerator<string> {
        yield currentLease().key;
      }

      @Limited(
        function (this: Job, id: string) {
          return `job:${this.name}:${id}`;
        },
        { permits: 1 },
      )
      async limited(_id: string): Promise<string> {
        return currentLease().key;
      }

      @Locked((id: string) => `job:invoices:${id}`)
      async arrow(_id: string): Promise<string> {
        return currentLease().key;
      }
    }
    const { instance } = lockedInstance(Job);
    const result = instance[method]('7');
    const keys = isObservable(result) ? result : from(result);
    expect(await lastValueFrom(keys)).toBe('job:invoices:7');
  });
});
