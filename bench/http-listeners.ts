import { Agent, type ClientRequest, request } from "node:http";
import type { Ready } from "./http-child.ts";

export interface Heard {
  /** Milliseconds from the entry's time to its arrival, one for each event and listener. */
  readonly delays: readonly number[];
  readonly delivered: number;
  readonly reconnects: number;
  /** Numbers that a listener never got, got twice or out of order. */
  readonly gaps: number;
}

/** Holds so many listeners while `work` writes; cuts lines here and there, so often in all, and goes on after the last number seen. */
export async function listen(
  ready: Ready,
  plan: { readonly listeners: number; readonly reconnects: number },
  work: () => Promise<void>,
): Promise<Heard> {
  const delays: number[] = [];
  let gaps = 0;
  let reconnects = 0;
  let isOver = false;
  const lasts: number[] = [];
  const lines: ClientRequest[] = [];
  const agent = new Agent({ keepAlive: false, maxSockets: Number.POSITIVE_INFINITY });

  function open(n: number): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const headers = {
      authorization: `Bearer ${ready.auditor}`,
      ...(lasts[n] === undefined ? {} : { "last-event-id": String(lasts[n]) }),
    };
    const line = request(`${ready.url}/v1/events`, { headers, agent }, (answer) => {
      if (answer.statusCode !== 200) return reject(new Error(`answered ${answer.statusCode}`));
      let rest = "";
      answer.setEncoding("utf8");
      answer.on("data", (chunk: string) => {
        const frames = (rest + chunk).split("\n\n");
        rest = frames.pop() ?? "";
        for (const frame of frames) hear(n, frame);
        resolve();
      });
      answer.on("error", () => {});
      return undefined;
    });
    line.on("error", reject);
    line.end();
    lines[n] = line;
    return promise;
  }

  function hear(n: number, frame: string): void {
    const seq = Number(/(?:^|\n)id: (\d+)/.exec(frame)?.[1] ?? Number.NaN);
    if (Number.isNaN(seq)) return;
    const isEntry = frame.includes("\ndata: ");
    const last = lasts[n];
    if (isEntry && last !== undefined && seq !== last + 1) gaps += 1;
    if (isEntry) delays.push(Date.now() - Date.parse(/"at":"([^"]+)"/.exec(frame)?.[1] ?? ""));
    lasts[n] = Math.max(seq, last ?? 0);
  }

  /** One listener after the other loses its line, evenly over the time. */
  async function cut(): Promise<void> {
    for (let n = 0; reconnects < plan.reconnects && !isOver; n = (n + 1) % plan.listeners) {
      lines[n]?.destroy();
      await open(n);
      reconnects += 1;
    }
  }

  await Promise.all(Array.from({ length: plan.listeners }, (_, n) => open(n)));
  const cutting = plan.reconnects > 0 ? cut() : Promise.resolve();
  await work();
  await cutting;
  isOver = true;
  const end = Math.max(...lasts);
  const patience = Date.now() + 5_000;
  while (lasts.some((last) => last < end) && Date.now() < patience) {
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  gaps += lasts.filter((last) => last < end).length;
  for (const line of lines) line.destroy();
  return { delays, delivered: delays.length, reconnects, gaps };
}
