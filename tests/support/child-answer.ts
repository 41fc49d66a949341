import type { ChildProcess } from "node:child_process";
import { once } from "node:events";

/** The next message of a child process; throws as soon as it is gone. */
export async function answerOf(child: ChildProcess): Promise<unknown> {
  const stop = new AbortController();
  const { signal } = stop;
  try {
    const [answer] = await Promise.race([
      once(child, "message", { signal }),
      once(child, "exit", { signal }).then(([code, killedBy]) => {
        throw new Error(`the process is gone: code ${code}, signal ${killedBy}`);
      }),
    ]);
    return answer;
  } finally {
    stop.abort();
  }
}
