import { runInNewContext } from 'node:vm';
import { afterEach, describe, expect, it } from 'vitest';
import { MISSING, readProperty } from '../../../lib/key/read-property.js';

class Base {
  own = 'own';
  readonly #hidden = 'hidden';
  get inherited(): string {
    return `${this.#hidden}:${this.own}`;
  }
  method(): string {
    return 'method';
  }
}

class Dto extends Base {
  get id(): number {
    return 7;
  }
  set writeOnly(_value: string) {
    throw new Error('never written');
  }
}

describe('readProperty', () => {
  it('reads own properties, also of plain, null-prototype and JSON objects and of arrays', () => {
    expect(readProperty(new Dto(), 'own')).toBe('own');
    expect(readProperty({ a: undefined }, 'a')).toBeUndefined();
    expect(readProperty(Object.assign(Object.create(null), { a: 1 }), 'a')).toBe(1);
    expect(readProperty(['x', 'y'], '1')).toBe('y');
    expect(readProperty(JSON.parse('{"__proto__":{"x":1},"constructor":"c"}'), '__proto__')).toEqual({
      x: 1,
    });
    expect(readProperty(JSON.parse('{"constructor":"c"}'), 'constructor')).toBe('c');
  });

  it('reads accessors that a class on the chain declares, on the instance itself', () => {
    expect(readProperty(new Dto(), 'id')).toBe(7);
    expect(readProperty(new Dto(), 'inherited')).toBe('hidden:own');
  });

  it('reads accessors defined on a model prototype at run time, as Mongoose does', () => {
    function Model(this: { doc: object }, doc: object) {
      this.doc = doc;
    }
    Object.defineProperty(Model.prototype, 'sku', {
      get(this: { doc: { sku: string } }) {
        return this.doc.sku;
      },
    });
    expect(readProperty(Reflect.construct(Model, [{ sku: 's1' }]) as object, 'sku')).toBe('s1');
  });

  it('reads the accessors of a class that was wrapped in a Proxy', () => {
    class Original {
      get id(): number {
        return 7;
      }
    }
    const Wrapped = new Proxy(Original, {});
    Object.defineProperty(Original.prototype, 'constructor', { value: Wrapped });
    expect(readProperty(new Wrapped(), 'id')).toBe(7);
  });

  it.each([
    'constructor',
    '__proto__',
    'toString',
    'hasOwnProperty',
    'valueOf',
    '__defineGetter__',
    'prototype',
  ])('never reads %s from what JavaScript defines', (name) => {
    for (const holder of [{}, [], new Dto(), new Map(), new Date(), runInNewContext('({})') as object]) {
      expect(readProperty(holder, name)).toBe(MISSING);
    }
  });

  it('reads neither inherited methods and values nor accessors without a getter', () => {
    expect(readProperty(new Dto(), 'method')).toBe(MISSING);
    expect(readProperty(new Dto(), 'writeOnly')).toBe(MISSING);
    expect(readProperty(Object.create({ admin: 'yes' }) as object, 'admin')).toBe(MISSING);
    expect(readProperty(new Dto(), 'nothing')).toBe(MISSING);
  });

  it('never reads built-in accessors, in this realm or another', () => {
    expect(readProperty(new Map([[1, 1]]), 'size')).toBe(MISSING);
    expect(readProperty(new Set(), 'size')).toBe(MISSING);
    expect(readProperty(/x/g, 'flags')).toBe(MISSING);
    expect(readProperty(new Uint8Array(3), 'length')).toBe(MISSING);
    expect(readProperty(Buffer.from('abc'), 'length')).toBe(MISSING);
    expect(readProperty(runInNewContext('new Map()') as object, 'size')).toBe(MISSING);
    expect(
      readProperty(runInNewContext('new (class A extends Map { get id() { return 7 } })') as object, 'id'),
    ).toBe(7);
  });

  describe('with polluted built-in prototypes', () => {
    afterEach(() => {
      Reflect.deleteProperty(Object.prototype, 'polluted');
      Reflect.deleteProperty(Array.prototype, 'polluted');
    });

    it('never reads what was added to them', () => {
      for (const prototype of [Object.prototype, Array.prototype]) {
        Object.defineProperty(prototype, 'polluted', { get: () => 'same for all', configurable: true });
      }
      expect(readProperty({}, 'polluted')).toBe(MISSING);
      expect(readProperty([], 'polluted')).toBe(MISSING);
      expect(readProperty(new Dto(), 'polluted')).toBe(MISSING);
    });
  });
});
