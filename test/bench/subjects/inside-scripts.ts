/** What the scripts of this library run inside Redis. The floor sends the same ones. */
export const INSIDE_SCRIPTS: readonly string[] = [
  'pttl',
  'hexists',
  'time',
  'get',
  'set',
  'hset',
  'pexpire',
  'publish',
  'del',
];
