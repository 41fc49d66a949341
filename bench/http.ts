import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { Agent, request } from "node:http";
import path from "node:path";
import type { Order, Ready } from "./http-child.ts";
import { listen } from "./http-listeners.ts";
import type { Result } from "./report.ts";
import { median, ratio, rounds, type Work } from "./rounds.ts";
import { scratch } from "./scratch.ts";

const CONNECTIONS = 32;
const CALLS = 3_200;
const LISTENERS = 200;
const RECONNECTS = 1_000;

/** What HTTP adds to a gated call, and how the feed holds many listeners; the library's figure is of the same process. */
export async function* httpBenches(wanted: (name: string) => boolean): AsyncGenerator<Result> {
  const wantsCalls = wanted("http.call");
  const wantsEvents = wanted("http.events");
  if (!wantsCalls && !wantsEvents) return;
  await using folder = await scratch();
  const child = fork(path.join(import.meta.dirname, "http-child.ts"), [
    path.join(folder.dir, "http.db"),
  ]);
  try {
    const [ready] = (await once(child, "message")) as [Ready];
    if (wantsCalls) yield* callBenches(child, ready);
    if (wantsEvents) yield* eventBenches(child, ready);
  } finally {
    child.disconnect();
    await once(child, "exit");
  }
}

async function* callBenches(child: ChildProcess, ready: Ready): AsyncGenerator<Result> {
  const library = async () => {
    await order(child, { do: "library", callers: CONNECTIONS, calls: CALLS });
    return CALLS;
  };
  const times: number[] = [];
  const rates = await rounds(
    { library, http: calls(ready, times), keyed: calls(ready, [], "keyed") },
    5,
  );
  const against = "library, 32 callers";
  const name = `http.call.${CONNECTIONS}`;
  yield {
    name,
    value: median(rates.http),
    unit: "calls/s",
    against,
    ratio: ratio(rates.http, rates.library),
    goal: ">= 0.35",
  };
  yield {
    name: `${name}.keyed`,
    value: median(rates.keyed),
    unit: "calls/s",
    against,
    ratio: ratio(rates.keyed, rates.library),
  };
  yield { name: `${name}.p99`, value: quantile(times.slice(CALLS), 0.99), unit: "ms" };
}

function calls(ready: Ready, times: number[], keyed?: "keyed"): Work {
  const agent = new Agent({ keepAlive: true, maxSockets: CONNECTIONS });
  let count = 0;
  return async () => {
    const workers = Array.from({ length: CONNECTIONS }, async (_, n) => {
      const address = `${ready.url}/v1/sessions/${encodeURIComponent(ready.sessions[n] ?? "")}/calls`;
      for (let i = 0; i < CALLS / CONNECTIONS; i += 1) {
        count += 1;
        const key = keyed === undefined ? {} : { "idempotency-key": `${process.pid}-${count}` };
        const start = performance.now();
        await post(
          agent,
          address,
          { authorization: `Bearer ${ready.agent}`, ...key },
          `h-${count}`,
        );
        times.push(performance.now() - start);
      }
    });
    await Promise.all(workers);
    return CALLS;
  };
}

function post(agent: Agent, url: string, headers: Record<string, string>, callId: string) {
  const body = `{"callId":"${callId}","tool":"stock.look","input":{"sku":"A-17","_confidence":90}}`;
  const all = { ...headers, "content-type": "application/json", "content-length": body.length };
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const sent = request(url, { method: "POST", agent, headers: all }, (answer) => {
    if (answer.statusCode !== 200) reject(new Error(`answered ${answer.statusCode}`));
    answer.resume();
    answer.on("end", resolve);
  });
  sent.on("error", reject);
  sent.end(body);
  return promise;
}

async function* eventBenches(child: ChildProcess, ready: Ready): AsyncGenerator<Result> {
  const steady = await listen(ready, { listeners: LISTENERS, reconnects: 0 }, () =>
    order(child, { do: "entries", perSecond: 100, seconds: 8 }),
  );
  if (steady.delivered < LISTENERS * 500) throw new Error("void: too few events were delivered");
  yield {
    name: `http.events.${LISTENERS}.p99`,
    value: quantile(steady.delays, 0.99),
    unit: "ms",
    against: "100 events/s",
    goal: "<= 250",
  };
  const broken = await listen(ready, { listeners: LISTENERS, reconnects: RECONNECTS }, () =>
    order(child, { do: "entries", perSecond: 100, seconds: 12 }),
  );
  if (broken.reconnects < RECONNECTS) throw new Error("void: too few reconnects");
  yield {
    name: "http.events.gaps",
    value: steady.gaps + broken.gaps,
    unit: "gaps",
    against: `${broken.reconnects} reconnects`,
    goal: "0",
  };
}

async function order(child: ChildProcess, what: Order): Promise<void> {
  child.send(what);
  const [answer] = (await once(child, "message")) as [string];
  if (answer !== "done") throw new Error(answer);
}

function quantile(values: readonly number[], q: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * q))] ?? Number.NaN;
}
