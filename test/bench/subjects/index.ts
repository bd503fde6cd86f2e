import { floor } from './floor.js';
import { nestRedisLock } from './nest-redis-lock.js';
import type { Subject } from './subject.js';

/** All subjects. A new one is a file beside this one, and a line here. */
const subjects: readonly Subject[] = [floor, nestRedisLock];

export const subjectNamed = (name: string): Subject => {
  const subject = subjects.find((candidate) => candidate.name === name);
  if (!subject)
    throw new Error(`no subject "${name}"; there are ${subjects.map((one) => one.name).join(', ')}`);
  return subject;
};
