import { existsSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { onPath } from '../../../.ci/process.mjs';

/** How the program of a server is started, and where its files are. */
export interface MysqlProgram {
  /** The command, with the arguments that come first. */
  readonly command: readonly string[];
  readonly baseFolder: string;
  /** Folder with the messages, the character sets and the statements that make the system's own tables. */
  readonly shareFolder: string;
  readonly isMariaDb: boolean;
}

const programOf = (file: string, before: readonly string[] = []): MysqlProgram => {
  const baseFolder = dirname(dirname(file));
  const isMariaDb = file.endsWith('mariadbd');
  const shares = ['mariadb', 'mysql'].map((name) => join(baseFolder, 'share', name));
  const shareFolder = shares.find((folder) => existsSync(join(folder, 'english', 'errmsg.sys')));
  if (!shareFolder) throw new Error(`the files that ${file} needs are in none of ${shares.join(', ')}`);
  return { command: [...before, file], baseFolder, shareFolder, isMariaDb };
};

/**
 * Returns the MariaDB of this machine. `TEST_MYSQL_ROOT` names a folder with another server: the files of its packages
 * and of the libraries that it needs, from another release of Debian.
 */
export const mysqlProgram = (): MysqlProgram => {
  const root = process.env['TEST_MYSQL_ROOT'];
  if (root) {
    const loader = join(root, 'usr', 'lib64', 'ld-linux-x86-64.so.2');
    const libraries = join(root, 'usr', 'lib', 'x86_64-linux-gnu');
    const file = ['mariadbd', 'mysqld'].map((name) => join(root, 'usr', 'sbin', name)).find(existsSync);
    if (!file) throw new Error(`no mariadbd and no mysqld in ${root}`);
    return programOf(file, [loader, '--library-path', libraries]);
  }
  const file = onPath('mariadbd') ?? '/usr/sbin/mariadbd';
  if (existsSync(file)) return programOf(file);
  throw new Error(
    'no mariadbd on the PATH: install it (npm run setup does so where it may, as root with apt-get)',
  );
};
