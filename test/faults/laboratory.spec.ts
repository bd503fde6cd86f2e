import { describe, expect, it } from 'vitest';
import { DATABASES, ENSEMBLES, KINDS, kindsNamed, MANY } from './laboratory.js';

const named = (...texts: string[]): string[] => Object.keys(kindsNamed(texts));

describe('the topologies that a text names', () => {
  it('are one, if the text is a whole name', () => {
    for (const name of Object.keys({ ...KINDS, ...MANY, ...DATABASES, ...ENSEMBLES }))
      expect(named(name)).toEqual([name]);
  });

  it('are all whose name has the text in it, if it is no whole name', () => {
    expect(named('with replicas')).toEqual(['Sentinel, with replicas', 'Cluster, with replicas']);
    expect(named('Sentinel', 'of 3, ')).toEqual(['quorum of 3, with AOF', 'Sentinel']);
  });
});
