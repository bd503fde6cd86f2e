import { codeBlocks, readFromRoot, section } from './markdown.js';

/** The rules of the ACL user that the documentation gives, word by word, with this password. */
export const aclRules = (password: string): string[] => {
  const [user = ''] = codeBlocks(section(readFromRoot('docs/operations/permissions.md'), 'The user'), 'text');
  return user
    .replace(/^user locks /, '')
    .replace('<password>', password)
    .trim()
    .split(/\s+/);
};
