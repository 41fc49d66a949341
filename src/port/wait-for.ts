import type { CallAnswer } from "../model/call.ts";
import type { Rooms } from "./rooms.ts";

export interface WaitOptions {
  /** How long to wait for a person; afterwards the question is as open as before. */
  readonly timeoutMs: number;
  readonly signal?: AbortSignal;
}

/** Notifications may be late or missing, so it looks by itself as well. */
const LOOK_EVERY_MS = 1_000;

/** What is being carried out at this moment, or was lost and waits for a person to look, is open as well. */
function isSettled(answer: CallAnswer | undefined): boolean {
  return answer?.answer !== "pending" && answer?.answer !== "unknown";
}

/** Looks, and looks again whenever something was committed, until the answer is final or the time is over. */
export async function waitFor(
  look: () => Promise<CallAnswer | undefined>,
  { timeoutMs, signal }: WaitOptions,
  { timers, onCommit }: Rooms,
): Promise<CallAnswer | undefined> {
  let over = false;
  let wake = (): void => {};
  const ends = () => {
    over = true;
    wake();
  };
  const cancel = timers.after(timeoutMs, ends);
  const forget = onCommit(() => wake());
  signal?.addEventListener("abort", ends, { once: true });
  try {
    for (;;) {
      // Armed before looking, so that what happens in between is not missed.
      const woken = new Promise<void>((resolve) => {
        wake = resolve;
      });
      const answer = await look();
      if (isSettled(answer) || over || signal?.aborted === true) return answer;
      const stop = timers.after(LOOK_EVERY_MS, () => wake());
      await woken;
      stop();
    }
  } finally {
    cancel();
    forget();
    signal?.removeEventListener("abort", ends);
  }
}
