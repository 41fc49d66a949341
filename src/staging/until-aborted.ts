/**
 * Waits for work no longer than the signal allows. Work that ignores the signal is left behind and its late answer is
 * thrown away, also when it arrives in the same turn: after the deadline an approval is worth nothing.
 */
export async function untilAborted<T>(
  signal: AbortSignal,
  work: () => T | PromiseLike<T>,
): Promise<T> {
  signal.throwIfAborted();
  const aborted = Promise.withResolvers<never>();
  const onAbort = () => aborted.reject(signal.reason);
  signal.addEventListener("abort", onAbort, { once: true });
  try {
    const answer = await Promise.race([work(), aborted.promise]);
    signal.throwIfAborted();
    return answer;
  } finally {
    signal.removeEventListener("abort", onAbort);
  }
}
