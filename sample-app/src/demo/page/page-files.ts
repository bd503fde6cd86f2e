import { readdirSync, readFileSync } from 'node:fs';
import { extname } from 'node:path';
import { fileURLToPath } from 'node:url';

const TYPES: Readonly<Record<string, string>> = {
  '.html': 'text/html; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
};

export interface PageFile {
  readonly type: string;
  readonly content: Buffer;
}

/** Reads the files of the page. Nothing else can be asked for. */
export const readPageFiles = (folder = new URL('../../page/', import.meta.url)): Map<string, PageFile> =>
  new Map(
    readdirSync(fileURLToPath(folder)).flatMap((name) => {
      const type = TYPES[extname(name)];
      return type ? [[name, { type, content: readFileSync(new URL(name, folder)) }] as const] : [];
    }),
  );
