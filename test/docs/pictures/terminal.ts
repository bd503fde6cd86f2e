import type { Locks } from '../../../lib/cli/commands.js';
import { runCommand } from '../../../lib/cli/commands.js';
import type { ListedLock } from '../../../lib/index.js';
import { element, image, text } from '../../support/svg.js';

/** Width of a character, and height of a line. */
const [LETTER, LINE] = [6.65, 17];
const [LEFT, TOP] = [32, 66];

const process = (host: string, pid: number, appName: string) => ({
  ...{ instanceId: `${host}-${pid}`, client: 'node' as const, host, pid, appName },
});
const [shop1, shop2, jobs] = [
  process('shop-1', 318, 'shop'),
  process('shop-2', 411, 'shop'),
  process('jobs-1', 97, 'jobs'),
];

/** Held keys of two services. */
const LOCKS: readonly ListedLock[] = [
  {
    ...{ key: 'order:42', kind: 'exclusive' },
    holders: [
      {
        ...{ owner: 'cf9f2582-9b28-8fe4-9229-000000000000:1', count: 1, remainingMs: 27_400 },
        ...{ process: shop1, heldMs: 12_600, label: 'order:<<userId>>' },
      },
    ],
    waiting: ['cf9f2582-9b28-8fe4-9229-000000000000:2', '4822ec3f-1a9a-818c-a63d-000000000000:3'],
  },
  {
    ...{ key: 'crm:acme', kind: 'permit' },
    holders: [
      {
        ...{ owner: 'cf9f25829b288fe49229000000000002', count: 1, remainingMs: 29_400 },
        ...{ process: shop1, heldMs: 640, label: 'crm:<<tenant>>' },
      },
      {
        ...{ owner: '4822ec3f1a9a818ca63d000000000001', count: 1, remainingMs: 29_100 },
        ...{ process: shop2, heldMs: 920, label: 'crm:<<tenant>>' },
      },
    ],
    waiting: [],
  },
  {
    ...{ key: 'nightly-report', kind: 'exclusive' },
    holders: [
      {
        ...{ owner: '91e75b0d-7c11-84a2-8d02-000000000000:1', count: 1, remainingMs: 21_800 },
        ...{ process: jobs, heldMs: 202_400, label: 'nightly-report' },
      },
    ],
    waiting: [],
  },
  {
    ...{ key: 'order:7', kind: 'exclusive', holders: [] },
    waiting: ['4822ec3f-1a9a-818c-a63d-000000000000:5'],
  },
];

/** Returns what the command prints. */
const printed = async (): Promise<readonly string[]> => {
  const locks = { list: async () => ({ locks: LOCKS, cursor: undefined }) } as unknown as Locks;
  const invocation = {
    ...({ command: 'list', key: '', keyPrefix: undefined, json: false, yes: false, secrets: [] } as const),
    address: { store: 'redis', sources: [] } as const,
  };
  let output = '';
  const nothing = (): void => undefined;
  await runCommand(invocation, locks, {
    ...{ columns: undefined, ask: undefined, note: nothing, out: (text) => (output += text) },
  });
  return output.trimEnd().split('\n');
};

/** Draws a terminal in which the command has listed the held keys. */
export const terminalSvg = async (): Promise<string> => {
  const lines = ['$ npx nest-redis-lock list', ...(await printed())];
  const columns = Math.max(...lines.map(({ length }) => length));
  const width = Math.ceil(2 * LEFT + columns * LETTER);
  const height = TOP + lines.length * LINE + 18;
  const drawn = lines.map((line, at) =>
    text(LEFT, TOP + at * LINE, line, { class: 'mono', 'xml:space': 'preserve' }),
  );
  const box = element('rect', {
    ...{ x: 20, y: 44, width: width - 40, height: height - 58, rx: 5, class: 'box' },
  });
  return image(
    width,
    height,
    'Held keys of all processes',
    'The command list shows each key with its kind, owner, remaining lease, waiting callers, host, process, app, time and label.',
    [box, ...drawn],
  );
};
