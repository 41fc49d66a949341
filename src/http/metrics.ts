import { monitorEventLoopDelay } from "node:perf_hooks";
import type { Gate } from "../gate/create-gate.ts";
import type { ToolBreaker } from "../model/switch.ts";

type DenialSnapshot = ReturnType<Gate["denials"]>;

export type Metrics = ReturnType<typeof createMetrics>;

const BUCKETS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10] as const;

interface Series {
  count: number;
  sum: number;
  readonly buckets: number[];
}

/** What the server counts, as Prometheus reads it. No label holds a tenant, a subject or an id. */
export function createMetrics() {
  const answers = new Map<string, { route: string; status: number; count: number }>();
  const times = new Map<string, Series>();
  const inFlight = { value: 0 };
  let replays = 0;
  let refused = 0;
  const delay = monitorEventLoopDelay({ resolution: 20 });
  delay.enable();
  return {
    /** Requests of agents in progress. */
    inFlight,
    request(route: string, status: number, seconds: number): void {
      const key = `${route} ${status}`;
      const answer = answers.get(key) ?? { route, status, count: 0 };
      answer.count += 1;
      answers.set(key, answer);
      const series = times.get(route) ?? { count: 0, sum: 0, buckets: BUCKETS.map(() => 0) };
      times.set(route, series);
      series.count += 1;
      series.sum += seconds;
      const bucket = BUCKETS.findIndex((limit) => seconds <= limit);
      if (bucket >= 0) series.buckets[bucket] = (series.buckets[bucket] ?? 0) + 1;
    },
    replayed(): void {
      replays += 1;
    },
    refusedSignIn(): void {
      refused += 1;
    },
    text({ listeners, breakers, denials }: Measured): string {
      const { rss } = process.memoryUsage();
      const byTool = denials.flatMap((one) => one.byTool);
      const byPolicy = denials.flatMap((one) => one.byPolicy);
      const open = breakers.map(({ id, state }) => [id, state === "open" ? 1 : 0] as const);
      const failures = breakers.map((one) => [one.id, one.failures] as const);
      const lines = [
        ...head("sallyport_requests_total", "counter", "Answers by route and status."),
        ...[...answers.values()].map(
          ({ route, status, count }) =>
            `sallyport_requests_total{route="${route}",status="${status}"} ${count}`,
        ),
        ...head("sallyport_request_seconds", "histogram", "Time from request to answer."),
        ...[...times].flatMap(([route, series]) => histogram(route, series)),
        ...one("sallyport_in_flight", "gauge", "Requests of agents in progress.", inFlight.value),
        ...one("sallyport_feed_listeners", "gauge", "Open event streams.", listeners),
        ...one("sallyport_replays_total", "counter", "Stored answers returned for a key.", replays),
        ...one(
          "sallyport_refused_sign_ins_total",
          "counter",
          "Requests without a valid sign-in or token.",
          refused,
        ),
        ...series("sallyport_denials_total", "counter", "Denied calls by tool.", "tool", byTool),
        ...series(
          "sallyport_denials_by_check_total",
          "counter",
          "Denied calls by the check that denied them.",
          "check",
          byPolicy,
        ),
        ...series(
          "sallyport_breaker_open",
          "gauge",
          "Tenants in which the tool is stopped.",
          "tool",
          open,
        ),
        ...series(
          "sallyport_breaker_failures",
          "gauge",
          "Failures of a tool in a row.",
          "tool",
          failures,
        ),
        ...one("sallyport_event_loop_p99_seconds", "gauge", "Stall.", delay.percentile(99) / 1e9),
        ...one("process_resident_memory_bytes", "gauge", "Resident memory.", rss),
      ];
      return `${lines.join("\n")}\n`;
    },
    close: () => void delay.disable(),
  };
}

/** What the gates know, of all tenants together. */
interface Measured {
  readonly listeners: number;
  readonly breakers: readonly ToolBreaker[];
  readonly denials: readonly DenialSnapshot[];
}

/** Agents can invent names of tools, and a scrape must stay small. */
const MOST_SERIES = 200;

/** One line for each name; the same name in several tenants is added up. */
function series(
  name: string,
  type: string,
  help: string,
  label: string,
  counts: readonly (readonly [string, number])[],
): readonly string[] {
  const sums = new Map<string, number>();
  for (const [of, count] of counts) sums.set(of, (sums.get(of) ?? 0) + count);
  const most = [...sums].toSorted(([, a], [, b]) => b - a).slice(0, MOST_SERIES);
  const quoted = (text: string) =>
    text.toWellFormed().replaceAll(/[\\"]/g, "\\$&").replaceAll("\n", "\\n");
  return [
    ...head(name, type, help),
    ...most.map(([of, count]) => `${name}{${label}="${quoted(of)}"} ${count}`),
  ];
}

function head(name: string, type: string, help: string): readonly string[] {
  return [`# HELP ${name} ${help}`, `# TYPE ${name} ${type}`];
}

function one(name: string, type: string, help: string, value: number): readonly string[] {
  return [...head(name, type, help), `${name} ${value}`];
}

function histogram(route: string, { count, sum, buckets }: Series): readonly string[] {
  let total = 0;
  const lines = BUCKETS.map((limit, index) => {
    total += buckets[index] ?? 0;
    return `sallyport_request_seconds_bucket{route="${route}",le="${limit}"} ${total}`;
  });
  return [
    ...lines,
    `sallyport_request_seconds_bucket{route="${route}",le="+Inf"} ${count}`,
    `sallyport_request_seconds_sum{route="${route}"} ${sum}`,
    `sallyport_request_seconds_count{route="${route}"} ${count}`,
  ];
}
