import { codeBlocks, readFromRoot, section } from './markdown.js';

const blockOf = (heading: string): string =>
  codeBlocks(section(readFromRoot('docs/operations/permissions.md'), heading), 'text')[0] ?? '';

/** The rules of the ACL user that the documentation gives, word by word, with this password. */
export const aclRules = (password: string): string[] =>
  blockOf('The user')
    .replace(/^user locks /, '')
    .replace('<password>', password)
    .trim()
    .split(/\s+/);

/** What the user needs beside these for permits. */
export const permitRules = (): string[] => blockOf('With permits').trim().split(/\s+/);
