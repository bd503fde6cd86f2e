import { spawn, type ChildProcess } from 'node:child_process';

// Reads "+ <pid>" and "- <pid>" lines; when its input ends, everything still on the list is killed.
const GUARD = `
pids=
while read -r op pid; do
  kept=
  for p in $pids; do [ "$p" = "$pid" ] || kept="$kept $p"; done
  pids=$kept
  [ "$op" = + ] && pids="$pids $pid"
done
[ -z "$pids" ] || kill -9 $pids 2>/dev/null
`;

let guard: ChildProcess | undefined;

const tell = (line: string) => {
  if (!guard) {
    // Detached: a Ctrl-C for the whole process group must not end the guard before it has done its work.
    guard = spawn('/bin/sh', ['-c', GUARD], { stdio: ['pipe', 'ignore', 'ignore'], detached: true });
    guard.unref();
    const input = guard.stdin as (NodeJS.WritableStream & { unref?(): void }) | null;
    input?.unref?.();
    input?.on('error', (error) => {
      throw new Error('the guard of the test processes is gone', { cause: error });
    });
  }
  guard.stdin?.write(`${line}\n`);
};

/**
 * Makes sure that `child` does not outlive this process, however this process ends: the pipe to the guard closes
 * even when it is killed with SIGKILL, which no exit handler survives.
 */
export function guardProcess(child: ChildProcess): void {
  const { pid } = child;
  if (pid === undefined) return;
  tell(`+ ${pid}`);
  child.once('exit', () => tell(`- ${pid}`));
}
