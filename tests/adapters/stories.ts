// The same stories for every framework: a run stops, people decide in another process, a third process continues. After each one
// the ledger is counted: no effect is lost, none happens twice, none without a decision.

import { spawn } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterEach, beforeEach, describe, expect, type TestContext, test } from "vitest";
import { record } from "../support/record.ts";
import { SCALE } from "../support/scale.ts";
import { AGENT, type Report, RUN, STILL_WAITS, SUB_AGENT, type Wish } from "./world.ts";

const NODE = ["--conditions=sallyport-source", "--disable-warning=ExperimentalWarning"];
export const one: readonly Wish[] = [{ id: "1", tool: "refund", cents: 999 }];

let folder = "";
const counted = { stories: 0, effects: 0, lost: 0, twice: 0, ungated: 0 };
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

/** The effects, in the order in which they happened. */
export function ledger(): readonly string[] {
  const file = path.join(folder, "ledger.txt");
  return existsSync(file) ? readFileSync(file, "utf8").trim().split("\n") : [];
}

/** Counts what happened against what was decided until now, and then insists on it. */
export function happened(...due: readonly string[]): void {
  const effects = ledger();
  counted.stories = 1;
  counted.effects = effects.length;
  counted.lost += due.filter((effect) => !effects.includes(effect)).length;
  counted.twice += effects.length - new Set(effects).size;
  counted.ungated += effects.filter((effect) => !due.includes(effect)).length;
  expect(effects.toSorted()).toEqual(due.toSorted());
}

/** A file of the story, as a process of it left or finds it. */
export const storyFile = (name: string): string => path.join(folder, name);

export interface Framework {
  readonly name: string;
  /** The file of its processes. */
  readonly child: string;
  /** Ways to run the framework, the usual one first: passed as HOW. */
  readonly ways: readonly string[];
  /** The framework can keep one stopped call of a turn, so people are asked about one after the other. */
  readonly parallel?: "one after the other";
  /**
   * Ways in which an agent has another one make the call, passed as HOW. Most stop the run as a whole; Claude Code cannot stop a
   * sub-agent, so that is told.
   */
  readonly subAgents: { readonly ways: readonly string[]; readonly are?: "told" };
  /** Made to continue without an answer, it stops again or fails; Claude Code loses the call, and its model is told. */
  readonly forced?: "is told";
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
export function castOf(child: string, always: NodeJS.ProcessEnv = {}) {
  const of = (args: readonly string[], env: NodeJS.ProcessEnv = {}) =>
    processOf(child, args, { ...always, ...env });
  const run = async (args: readonly string[], env?: NodeJS.ProcessEnv): Promise<Report> =>
    JSON.parse((await of(args, env)).stdout);
  const elsewhere = (...args: readonly string[]) => processOf("decide-child.ts", args, {});
  return {
    of,
    run,
    start: (wishes: readonly Wish[], env?: NodeJS.ProcessEnv) =>
      run(["start", JSON.stringify(wishes)], env),
    resume: (env?: NodeJS.ProcessEnv) => run(["resume"], env),
    decide: (...args: readonly string[]) => of(["decide", ...args]),
    elsewhere,
    async asked(): Promise<readonly Asked[]> {
      return JSON.parse((await elsewhere("show")).stdout);
    },
  };
}

type Cast = ReturnType<typeof castOf>;

const REFUSES = { REFUSES: "1" };
const executed = "INV-1 999";

/** What every way to run a framework has to tell, in the order of their rotation through the ways. */
const stories: Readonly<Record<string, (cast: Cast, framework: Framework) => Promise<void>>> = {
  async "tells the model a person's no with the reason"({ start, decide, resume }) {
    await start(one);
    await decide("reject", "ask for the receipt first");
    const { told } = await resume();
    expect(told["1"]).toMatch(/ada said no\. ask for the receipt first/);
    happened();
  },

  async "tells the model what a person changed in its call"({ start, decide, resume }) {
    await start(one);
    await decide("change");
    await decide("approve");
    const { told } = await resume();
    expect(told["1"]).toMatch(/ada changed your call.*cents.*100 instead of 999/);
    happened("INV-1 100");
  },

  async "tells the model what a person changed, approved by a process without the tool"(cast) {
    const { start, decide, elsewhere, resume } = cast;
    await start(one);
    await decide("change");
    await elsewhere("approve");
    const { told } = await resume();
    expect(told["1"]).toMatch(/ada changed your call.*cents.*100 instead of 999/);
    happened("INV-1 100");
  },

  async "is not continued by a forced yes, and continues after the real one"(cast, { forced }) {
    const { start, resume, run, decide } = cast;
    await start(one);
    expect(await resume()).toEqual(STILL_WAITS);
    const made = await run(["force"]);
    if (forced === "is told") expect(JSON.stringify(made)).not.toMatch(/refunded/);
    else expect(made).toEqual({ paused: expect.toSatisfy(isPaused), told: {} });
    happened();
    await decide("approve");
    happened(executed);
    if (forced === undefined) expect((await resume()).told["1"]).toMatch(/INV-1/);
    happened(executed);
  },

  async "tells the model that an outcome is unknown, and does not repeat the call"(cast) {
    const { start, decide, resume } = cast;
    await start([{ id: "1", tool: "refund", cents: 666 }]);
    await decide("approve");
    const { told } = await resume();
    expect(told["1"]).toMatch(/not known whether this happened/);
    happened();
  },

  async "tells the model that the target refused"({ start, of, resume }) {
    await start([{ id: "1", tool: "refund", cents: 555 }], REFUSES);
    await of(["decide", "approve"], REFUSES);
    const { told } = await resume(REFUSES);
    expect(told["1"]).toMatch(/the invoice is closed/);
    happened();
  },

  async "executes itself what was approved by a process without the tool"(cast) {
    const { start, elsewhere, resume } = cast;
    await start(one);
    await elsewhere("approve");
    happened();
    expect((await resume()).told["1"]).toMatch(/INV-1/);
    happened(executed);
  },

  async "is asked again when the record changed since the yes, and continues after the second one"(
    { start, elsewhere, of, resume },
    { forced },
  ) {
    const record = { VERSIONED: "record.txt" };
    await start(one, record);
    await elsewhere("approve");
    writeFileSync(storyFile("record.txt"), "v1");
    const again = await resume(record);
    if (forced === "is told") expect(again.told["1"]).toMatch(/went back to review/);
    else expect(again).toEqual({ paused: expect.toSatisfy(isPaused), told: {} });
    happened();
    await of(["decide", "approve"], record);
    happened(executed);
    if (forced === undefined) expect((await resume(record)).told["1"]).toMatch(/INV-1/);
    happened(executed);
  },

  "executes once what was approved by a process that was killed right after": killedAt("S4.after"),
  "executes once what was approved by a process that was killed before the call":
    killedAt("S5.before"),

  async "continues once when two processes resume at the same time"({ start, elsewhere, resume }) {
    await start(one);
    await elsewhere("approve");
    const resumed = await Promise.all([resume(), resume()]);
    expect(resumed.flatMap(({ told }) => Object.keys(told))).toEqual(["1"]);
    happened(executed);
  },

  async "executes once when two processes are made to continue, and tells both models"(cast) {
    const { start, elsewhere, run } = cast;
    await start(one);
    await elsewhere("approve");
    const forced = () => run(["force"], { KEEP: "1" });
    for (const { told } of await Promise.all([forced(), forced()])) {
      expect(told["1"]).toMatch(/INV-1/);
    }
    happened(executed);
  },

  async "runs what is read-only without asking"({ start }) {
    const { paused, told } = await start([{ id: "1", tool: "lookup", cents: 1 }]);
    expect([paused, told["1"]]).toEqual([[], expect.stringMatching(/INV-1 is open/)]);
    happened();
  },
};

function killedAt(KILL_AT: string) {
  return async ({ start, of, resume }: Cast) => {
    await start(one);
    const { signal } = await of(["decide", "approve"], { KILL_AT });
    expect(signal).toBe("SIGKILL");
    happened();
    expect((await resume()).told["1"]).toMatch(/INV-1/);
    happened(executed);
  };
}

/** At the call again, or with an error that says so. */
function isPaused(paused: readonly string[]): boolean {
  return paused[0] === "1" || paused[0] === STILL_WAITS.paused[0];
}

/** The framework whose stories are all part of `npm test`; of the others it tells a few, and the proof tells all. */
const TOLD_WHOLE = "AI SDK";
const isShort = ({ name }: Framework) => SCALE === "test" && name !== TOLD_WHOLE;
const SHORT: readonly string[] = [
  "tells the model what a person changed, approved by a process without the tool",
  "tells the model that an outcome is unknown, and does not repeat the call",
  "executes once what was approved by a process that was killed before the call",
  "continues once when two processes resume at the same time",
];

/** Every way of every story in the proof, otherwise the usual one. */
function told(framework: Framework) {
  return Object.entries(stories).flatMap(([title, story]) => {
    const chosen = isShort(framework) && !SHORT.includes(title) ? [] : waysOf(framework);
    return chosen.map((HOW) => [HOW, title, story] as const);
  });
}

function waysOf({ ways }: Pick<Framework, "ways">): readonly string[] {
  return SCALE === "test" ? ways.slice(0, 1) : ways;
}

/** Once in a file, also for the stories that it tells besides. */
export function storiesOf(framework: Framework): void {
  beforeEach(() => {
    folder = mkdtempSync(path.join(tmpdir(), "sallyport-story-"));
    Object.assign(counted, { stories: 0, effects: 0, lost: 0, twice: 0, ungated: 0 });
  });
  afterEach(({ task }: TestContext) => {
    rmSync(folder, { recursive: true, force: true });
    const what = `${task.suite?.name ?? "story"}: ${task.name}`;
    if (counted.stories > 0) record({ goal: "ADAPTERS", what, figures: counted });
  });

  const { name, child, parallel, subAgents, skip } = framework;
  const ways = waysOf(framework);

  // skip: as its framework says
  describe.skipIf(skip !== undefined)(
    skip === undefined ? name : `${name} (${skip})`,
    patient,
    () => {
      test.each(ways)(
        "%s: stops, is approved in another process and continues in a third",
        async (HOW) => {
          const { start, decide, resume } = castOf(child, { HOW });
          expect(await start(one)).toEqual({ paused: ["1"], told: {} });
          happened();
          await decide("approve");
          const { paused, told } = await resume();
          expect(paused).toEqual([]);
          expect(told["1"]).toMatch(/INV-1/);
          happened(executed);
          expect((await resume()).paused).not.toEqual(["1"]);
          happened(executed);
        },
      );

      test.each(told(framework))("%s: %s", async (HOW, _, story) =>
        story(castOf(child, { HOW }), framework),
      );

      test.each(waysOf(subAgents))(
        "%s: the call belongs to the session of the parent, names both, is executed once, and the parent goes on",
        async (HOW) => {
          const { start, asked, elsewhere, resume } = castOf(child, { HOW });
          const isTold = subAgents.are === "told";
          expect((await start(one)).paused).toEqual(isTold ? [] : ["1"]);
          expect(await asked()).toEqual([{ sessionId: RUN, chain: [SUB_AGENT, AGENT] }]);
          if (!isTold) expect(await resume()).toEqual(STILL_WAITS);
          await elsewhere("approve");
          happened();
          expect(JSON.stringify((await (isTold ? start(one) : resume())).told)).toMatch(/INV-1/);
          happened(executed);
        },
      );

      // Where the run stops as a whole, a no comes back up as well.
      test.each(subAgents.are === "told" ? [] : waysOf(subAgents))(
        "%s: the parent hears of a person's no",
        async (HOW) => {
          const { start, elsewhere, resume } = castOf(child, { HOW });
          await start(one);
          await elsewhere("reject", "ask for the receipt first");
          expect(JSON.stringify((await resume()).told)).toMatch(/ask for the receipt first/);
          happened();
        },
      );

      const two: readonly Wish[] = [...one, { id: "2", tool: "refund", cents: 50 }];
      if (parallel === undefined) {
        test.each(ways)(
          "%s: stops at two calls of one turn, and continues only when both are decided",
          async (HOW) => {
            const { start, elsewhere, resume } = castOf(child, { HOW });
            const { paused } = await start(two);
            expect(paused.toSorted()).toEqual(["1", "2"]);
            await elsewhere("approve", "", "", "1");
            expect(await resume()).toEqual(STILL_WAITS);
            await elsewhere("approve");
            const { told } = await resume();
            expect(Object.keys(told).toSorted()).toEqual(["1", "2"]);
            happened(executed, "INV-2 50");
          },
        );
      } else {
        test("stops at the first of two calls of one turn, and at the second when the first is done", async () => {
          const { start, decide, resume } = castOf(child);
          expect((await start(two)).paused).toEqual(["1"]);
          await decide("approve");
          expect((await resume()).paused).toEqual(["2"]);
          happened(executed);
          await decide("approve");
          expect((await resume()).told["2"]).toMatch(/INV-2/);
          happened(executed, "INV-2 50");
        });
      }
    },
  );
}
