import 'reflect-metadata';
import { existsSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Headers } from '@nestjs/common';
import { Locked } from 'nest-redis-lock';
import { describe, expect, it } from 'vitest';
import { codeSpans, headings, readFromRoot, section, tables } from '../support/markdown.js';
import { FOLDERS, page, pagesIn } from './pages.js';

const RULES = 'docs/guide/rules-for-coding-agents.md';
const LLMS = 'docs/llms.txt';
const ROOT = fileURLToPath(new URL('../../', import.meta.url));

/** Declares a method with a template, as a class that is loaded does. */
const load = (template: string): void => {
  class Orders {
    async place(
      userId: string,
      id: string,
      dto: { owner: { id: string } },
      @Headers() headers: { 'x-id': string },
    ): Promise<string> {
      return userId + id + dto.owner.id + headers['x-id'];
    }
  }
  const descriptor = Object.getOwnPropertyDescriptor(Orders.prototype, 'place')!;
  (Locked as (key: string) => MethodDecorator)(template)(Orders.prototype, 'place', descriptor);
};

/** The templates of each `@Locked('…')`. */
const templatesIn = (text: string): string[] =>
  codeSpans(text).flatMap((code) => /^@Locked\('(.+)'\)$/.exec(code)?.[1] ?? []);

describe('the rules for coding agents', () => {
  const rules = section(page(RULES), 'Keys')
    .split('\n- **Right:**')
    .slice(1)
    .map((rule) => rule.split('**Wrong:**'));

  it('are one short page', () => {
    expect(page(RULES).trim().split('\n').length).toBeLessThanOrEqual(65);
  });

  it('show templates that are accepted as right', () => {
    const right = rules.flatMap(([text = '']) => templatesIn(text));
    expect(right).toContain('order:<<userId>>');
    for (const template of right) expect(() => load(template), template).not.toThrow();
  });

  it('show templates that are refused when the class is loaded as wrong', () => {
    const wrong = rules
      .map(([, text = '']) => text)
      .filter((text) => text.includes('Refused when the class is loaded'))
      .flatMap(templatesIn);
    expect(wrong).toEqual(expect.arrayContaining(['order:<userId>', 'order:$userId']));
    for (const template of wrong) expect(() => load(template), template).toThrow(/<</);
  });
});

describe('llms.txt', () => {
  /** The tables of docs/README.md as lists of links. */
  const made = (): string => {
    const index = readFromRoot('docs/README.md');
    const groups = headings(index).filter((heading) => heading !== 'How pages are written');
    const lists = groups.map((heading) => {
      const [{ rows }] = tables(section(index, heading)) as [ReturnType<typeof tables>[number]];
      return `## ${heading}\n\n${rows.map(([link, what]) => `- ${link}: ${what!.replaceAll(/\[([^\]]+)\]\([^)]+\)/g, '$1')}`).join('\n')}\n`;
    });
    return [
      '# nest-redis-lock\n',
      `> ${JSON.parse(readFromRoot('package.json')).description as string}\n`,
      'Read [Rules for coding agents](guide/rules-for-coding-agents.md) before you write code. All options: [Configuration](guide/configuration.md#all-options).\n',
      ...lists,
    ].join('\n');
  };

  it('has each page of the index with its line; `vitest run test/docs/agents.spec.ts -u` writes it', async () => {
    await expect(made()).toMatchFileSnapshot(join(ROOT, LLMS));
  });

  it('misses no page, and has no dead link', () => {
    // The address of a page that is not packed.
    const linked = [...readFromRoot(LLMS).matchAll(/\]\((?:https:.*\/blob\/main\/docs\/)?([^)#]+)/g)].map(
      ([, target]) => join(dirname(LLMS), target!),
    );
    expect(linked.filter((path) => !existsSync(join(ROOT, path)))).toEqual([]);
    const pages = FOLDERS.flatMap((folder) => pagesIn(folder).map(({ path }) => path));
    expect(pages.filter((path) => !linked.includes(path))).toEqual([]);
  });
});
