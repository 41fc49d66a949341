/**
 * How long work keeps this thread busy, in milliseconds. Counts the thread's CPU time and not the time that passes, so that
 * other processes on the machine do not change it.
 */
export function busyMs(work: () => void): number {
  const before = spentMs();
  work();
  return spentMs() - before;
}

/** The same for work that also waits: the waiting does not count. */
export async function busyMsOf(work: () => Promise<unknown>): Promise<number> {
  const before = spentMs();
  await work();
  return spentMs() - before;
}

function spentMs(): number {
  // Node 22 only knows the time of all threads together, which is never less.
  const { user, system } = (process.threadCpuUsage ?? process.cpuUsage)();
  return (user + system) / 1_000;
}
