import { spawn, type ChildProcess } from 'node:child_process';

// Reads lines "+ <pid>", "- <pid>" and "folder <path>"; when its input ends, every process still on the list is killed
// and every folder removed that was not removed before.
const GUARD = `
pids=
while read -r op what; do
  case $op in
    folder) set -- "$@" "$what" ;;
    *)
      kept=
      for p in $pids; do [ "$p" = "$what" ] || kept="$kept $p"; done
      pids=$kept
      [ "$op" = + ] && pids="$pids $what" ;;
  esac
done
[ -z "$pids" ] || kill -9 $pids 2>/dev/null
[ $# -eq 0 ] || rm -rf -- "$@"
`;

let guard: ChildProcess | undefined;

const send = (line: string) => {
  // Windows has no such shell. Its machines are thrown away after the tests.
  if (process.platform === 'win32') return;
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
  send(`+ ${pid}`);
  child.once('exit', () => send(`- ${pid}`));
}

/** Makes sure that a temporary folder is removed, at the latest when this process has ended. */
export function guardFolder(path: string): void {
  send(`folder ${path}`);
}
