// The same stories for every framework: a run stops, people decide in another process, a third process continues. After each one
// the ledger is counted: no effect is lost, none happens twice, none without a decision.

import { spawn } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { createGate } from "sallyport";
import { sqliteStore } from "sallyport/store/sqlite";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { record } from "../support/record.ts";
import { AGENT, type Report, RUN, STILL_WAITS, SUB_AGENT, type Wish } from "./world.ts";

const NODE = ["--conditions=sallyport-source", "--disable-warning=ExperimentalWarning"];
export const one: readonly Wish[] = [{ id: "1", tool: "refund", cents: 999 }];

let folder = "";
beforeEach(() => {
  folder = mkdtempSync(path.join(tmpdir(), "sallyport-story-"));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

function processOf(file: string, args: readonly string[], env: NodeJS.ProcessEnv) {
  const script = path.join(import.meta.dirname, file);
  const child = spawn(process.execPath, [...NODE, script, ...args], {
    cwd: folder,
    env: { ...process.env, ...env },
  });
  let [stdout, stderr] = ["", ""];
  child.stdout.on("data", (chunk) => {
    stdout += chunk;
  });
  child.stderr.on("data", (chunk) => {
    stderr += chunk;
  });
  return new Promise<{ stdout: string; signal: NodeJS.Signals | null }>((resolve, reject) => {
    child.on("close", (code, signal) =>
      code === 0 || signal !== null
        ? resolve({ stdout, signal })
        : reject(new Error(`${file} ${args[0]} failed: ${stderr}`)),
    );
  });
}

/** What the gate knows of the effects of a story, against what really happened: for the figures of the proof. */
async function count(what: string): Promise<void> {
  const effects = ledger().filter((line) => line !== "");
  await using store = sqliteStore({ file: path.join(folder, ".sallyport/sallyport.db") });
  await using gate = createGate({ store });
  const operations = await gate.operations.listBySession(RUN, {});
  const paid = operations.filter(
    ({ tool, status }) => !/lookup/.test(tool) && status === "success",
  );
  const gated = paid.filter(({ decisionId }) => decisionId !== "");
  const figures = {
    stories: 1,
    effects: effects.length,
    lost: Math.max(0, paid.length - effects.length),
    twice: effects.length - new Set(effects).size,
    ungated: Math.max(0, effects.length - gated.length),
  };
  record({ goal: "ADAPTERS", what, figures });
  expect(figures).toMatchObject({ lost: 0, twice: 0, ungated: 0 });
}

/** The effects, in the order in which they happened. */
export function ledger(): readonly string[] {
  const file = path.join(folder, "ledger.txt");
  return existsSync(file) ? readFileSync(file, "utf8").trim().split("\n") : [];
}

export interface Framework {
  readonly name: string;
  /** The file of its processes. */
  readonly child: string;
  /** Other ways to run the framework, each told the first story: passed as HOW. */
  readonly ways: readonly string[];
  /** The framework can keep one stopped call of a turn, so people are asked about one after the other. */
  readonly parallel?: "one after the other";
  /** What sub-agents do whose calls wait: the run stops as a whole, or the framework cannot stop them and they are told. */
  readonly subAgents?: "stop" | "are told";
  /** Why the stories cannot be told here. */
  readonly skip?: string | undefined;
}

/** New processes take their time on a busy machine. */
export const patient = { timeout: 180_000 };

/** A question as its person sees who asked. */
export interface Asked {
  readonly sessionId: string;
  readonly chain: readonly string[];
}

/** The processes of one framework, in the folder of the current story. */
export function castOf(child: string) {
  const run = async (args: readonly string[], env: NodeJS.ProcessEnv = {}): Promise<Report> =>
    JSON.parse((await processOf(child, args, env)).stdout);
  const elsewhere = (...args: readonly string[]) => processOf("decide-child.ts", args, {});
  return {
    run,
    start: (wishes: readonly Wish[], env?: NodeJS.ProcessEnv) =>
      run(["start", JSON.stringify(wishes)], env),
    decide: (...args: readonly string[]) => processOf(child, ["decide", ...args], {}),
    elsewhere,
    async asked(): Promise<readonly Asked[]> {
      return JSON.parse((await elsewhere("show")).stdout);
    },
  };
}

export function storiesOf({ name, child, ways, parallel, subAgents, skip }: Framework): void {
  const { run, start, decide, elsewhere, asked } = castOf(child);

  // skip: as its framework says
  describe.skipIf(skip !== undefined)(
    skip === undefined ? name : `${name} (${skip})`,
    patient,
    () => {
      afterEach(() => count(name));

      test.each(ways)(
        "%s: stops, is approved in another process and continues in a third",
        async (HOW) => {
          expect(await start(one, { HOW })).toEqual({ paused: ["1"], told: {} });
          expect(ledger()).toEqual([]);
          await decide("approve");
          const { paused, told } = await run(["resume"], { HOW });
          expect(paused).toEqual([]);
          expect(told["1"]).toMatch(/INV-1/);
          expect(ledger()).toEqual(["INV-1 999"]);
          const again = await run(["resume"], { HOW });
          expect(again.paused).not.toEqual(["1"]);
          expect(ledger()).toEqual(["INV-1 999"]);
        },
      );

      test("runs what is read-only without asking", async () => {
        const { paused, told } = await start([{ id: "1", tool: "lookup", cents: 1 }]);
        expect([paused, told["1"]]).toEqual([[], expect.stringMatching(/INV-1 is open/)]);
      });

      test("tells the model a person's no with the reason", async () => {
        await start(one);
        await decide("reject", "ask for the receipt first");
        const { told } = await run(["resume"]);
        expect(told["1"]).toMatch(/ada said no\. ask for the receipt first/);
        expect(ledger()).toEqual([]);
      });

      test.each(["with", "without"])(
        "tells the model what a person changed in its call, approved by a process %s the tool",
        async (which) => {
          await start(one);
          await decide("change");
          await (which === "with" ? decide("approve") : elsewhere("approve"));
          const { told } = await run(["resume"]);
          expect(told["1"]).toMatch(/ada changed your call.*cents.*100 instead of 999/);
          expect(ledger()).toEqual(["INV-1 100"]);
        },
      );

      test("tells the model that the target refused", async () => {
        await start([{ id: "1", tool: "refund", cents: 555 }], { REFUSES: "1" });
        await processOf(child, ["decide", "approve"], { REFUSES: "1" });
        const { told } = await run(["resume"], { REFUSES: "1" });
        expect(told["1"]).toMatch(/the invoice is closed/);
        expect(ledger()).toEqual([]);
      });

      test("tells the model that an outcome is unknown, and does not repeat the call", async () => {
        await start([{ id: "1", tool: "refund", cents: 666 }]);
        await decide("approve");
        const { told } = await run(["resume"]);
        expect(told["1"]).toMatch(/not known whether this happened/);
        expect(ledger()).toEqual([]);
      });

      test("waits when it is resumed too early, and executes nothing when the framework is told a yes", async () => {
        await start(one);
        expect((await run(["resume"])).paused).toEqual(["still waits"]);
        const forced = await run(["force"]);
        expect(JSON.stringify(forced)).not.toMatch(/refunded/);
        expect(ledger()).toEqual([]);
        await decide("approve");
        expect(ledger()).toEqual(["INV-1 999"]);
      });

      test("executes itself what was approved by a process without the tool", async () => {
        await start(one);
        await elsewhere("approve");
        expect(ledger()).toEqual([]);
        const { told } = await run(["resume"]);
        expect(told["1"]).toMatch(/INV-1/);
        expect(ledger()).toEqual(["INV-1 999"]);
      });

      test.each(["S4.after", "S5.before"])(
        "executes once what was approved by a process that was killed at %s",
        async (KILL_AT) => {
          await start(one);
          const { signal } = await processOf(child, ["decide", "approve"], { KILL_AT });
          expect([signal, ledger()]).toEqual(["SIGKILL", []]);
          const { told } = await run(["resume"]);
          expect(told["1"]).toMatch(/INV-1/);
          expect(ledger()).toEqual(["INV-1 999"]);
        },
      );

      test("continues once when two processes resume at the same time", async () => {
        await start(one);
        await elsewhere("approve");
        const resumed = await Promise.all([run(["resume"]), run(["resume"])]);
        expect(resumed.flatMap(({ told }) => Object.keys(told))).toEqual(["1"]);
        expect(ledger()).toEqual(["INV-1 999"]);
      });

      test("executes once when two processes are made to continue the same run, and tells both models", async () => {
        await start(one);
        await elsewhere("approve");
        const forced = () => run(["force"], { KEEP: "1" });
        for (const { told } of await Promise.all([forced(), forced()])) {
          expect(told["1"]).toMatch(/INV-1/);
        }
        expect(ledger()).toEqual(["INV-1 999"]);
      });

      // Other frameworks have no sub-agents that their host can gate.
      const withSubAgents = subAgents === undefined ? [] : [subAgents];
      test.each(withSubAgents)(
        "a sub-agent's call belongs to the session of its parent, names both, and is executed once",
        async () => {
          const env = { HOW: "sub-agent" };
          const first = await start(one, env);
          expect(first.paused).toEqual(subAgents === "stop" ? ["1"] : []);
          expect(await asked()).toEqual([{ sessionId: RUN, chain: [SUB_AGENT, AGENT] }]);
          await elsewhere("approve");
          expect(ledger()).toEqual([]);
          const again = () => (subAgents === "stop" ? run(["resume"], env) : start(one, env));
          expect(JSON.stringify((await again()).told)).toMatch(/INV-1/);
          expect(ledger()).toEqual(["INV-1 999"]);
        },
      );

      const two: readonly Wish[] = [...one, { id: "2", tool: "refund", cents: 50 }];
      if (parallel === undefined) {
        test.each(ways)(
          "%s: stops at two calls of one turn, and continues only when both are decided",
          async (HOW) => {
            const { paused } = await start(two, { HOW });
            expect(paused.toSorted()).toEqual(["1", "2"]);
            await elsewhere("approve", "", "", "1");
            expect(await run(["resume"], { HOW })).toEqual(STILL_WAITS);
            await elsewhere("approve");
            const { told } = await run(["resume"], { HOW });
            expect(Object.keys(told).toSorted()).toEqual(["1", "2"]);
            expect(ledger().toSorted()).toEqual(["INV-1 999", "INV-2 50"]);
          },
        );
      } else {
        test("stops at the first of two calls of one turn, and at the second when the first is done", async () => {
          expect((await start(two)).paused).toEqual(["1"]);
          await decide("approve");
          expect((await run(["resume"])).paused).toEqual(["2"]);
          expect(ledger()).toEqual(["INV-1 999"]);
          await decide("approve");
          expect((await run(["resume"])).told["2"]).toMatch(/INV-2/);
          expect(ledger()).toEqual(["INV-1 999", "INV-2 50"]);
        });
      }
    },
  );
}
