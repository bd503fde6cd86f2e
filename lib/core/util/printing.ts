const INSPECT = Symbol.for('nodejs.util.inspect.custom');

/**
 * Makes logs and JSON show only a summary of each instance. They would go through its fields to keys and connections, and
 * JSON would fail on a circle.
 */
export const printsOnly = <T extends object>(
  { prototype }: { readonly prototype: T },
  summary: (instance: T) => object,
): void => {
  const define = (name: string | symbol, value: (this: T) => object): void =>
    void Object.defineProperty(prototype, name, { value, configurable: true, writable: true });
  define('toJSON', function () {
    return summary(this);
  });
  define(INSPECT, function () {
    return { [this.constructor.name]: summary(this) };
  });
};
