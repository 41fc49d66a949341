import { readdir, readFile } from "node:fs/promises";

/** The variable that all processes of one command carry in their environment. */
export const MARK = "SALLYPORT_COMMAND";

/** While each round still finds some: a program that starts processes as fast as they are ended is given up on then. */
const MOST_ROUNDS = 200;

/**
 * Ends every process that carries the mark, also those that left the process group of the command. Processes inherit their
 * environment, and Linux shows the one that a process was started with. Rounds go on until one finds none, because a process
 * can start another one between the look and its end. On other systems there is nothing to look at, and a process that was
 * started with an environment of its own (`env -i`) is not found.
 */
export async function endMarked(mark: string): Promise<void> {
  if (process.platform !== "linux") return;
  const wanted = Buffer.from(`${MARK}=${mark}\0`);
  for (let round = 0; round < MOST_ROUNDS; round += 1) {
    const found = await markedProcesses(wanted);
    if (found.length === 0) return;
    // Stopped first, all of them: then none starts another one while the others are ended.
    for (const pid of found) signal(pid, "SIGSTOP");
    for (const pid of found) signal(pid, "SIGKILL");
  }
}

async function markedProcesses(wanted: Buffer): Promise<readonly number[]> {
  const names = await readdir("/proc").catch(() => []);
  const found = await Promise.all(
    names.map(async (name) => {
      if (!/^\d+$/.test(name) || Number(name) === process.pid) return [];
      // Gone, or another user's: neither is ours.
      const environment = await readFile(`/proc/${name}/environ`).catch(() => undefined);
      return environment?.includes(wanted) === true ? [Number(name)] : [];
    }),
  );
  return found.flat();
}

function signal(pid: number, name: "SIGSTOP" | "SIGKILL"): void {
  try {
    process.kill(pid, name);
  } catch {
    // It has ended by itself.
  }
}
