import { readdirSync } from 'node:fs';
import { basename } from 'node:path';
import { fileURLToPath } from 'node:url';
import { beforeAll, describe, expect, it } from 'vitest';
import { checkTypes, type Findings } from './type-check.js';

const folder = fileURLToPath(new URL('./cases/', import.meta.url));
const files = readdirSync(folder).map((name) => `${folder}${name}`);
/** An app may be stricter than this repository. */
const isExact = (file: string): boolean => file.endsWith('undefined-options.ts');
let findings: ReadonlyMap<string, Findings>;

beforeAll(() => {
  findings = new Map([
    ...checkTypes(files.filter((file) => !isExact(file))),
    ...checkTypes(files.filter(isExact), { exactOptionalPropertyTypes: true }),
  ]);
}, 120_000);

describe('the types accept what works and refuse what does not', () => {
  it.each(files.map((file) => [basename(file, '.ts'), file]))('%s', (_name, file) => {
    expect(findings.get(file)).toEqual([]);
  });
});
