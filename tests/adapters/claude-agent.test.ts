import { execFile } from "node:child_process";
import { writeFileSync } from "node:fs";
import path from "node:path";
import { promisify } from "node:util";
import { beforeAll, describe, expect, test } from "vitest";
import { outputOf, readPage, root } from "../docs/pages.ts";
import { makeProject } from "../docs/project.ts";
import { installHosts, noHosts } from "../support/hosts.ts";
import { castOf, happened, patient, storiesOf, storyFile } from "./stories.ts";
import { LOST, STILL_WAITS, type Wish } from "./world.ts";

beforeAll(async () => {
  if (noHosts === undefined) await installHosts();
});

storiesOf({
  name: "Claude Agent",
  child: "claude-agent-child.ts",
  ways: ["query"],
  subAgents: { ways: ["sub-agent"], are: "told" },
  forced: "is told",
  parallel: "one after the other",
  // skip: the program is hundreds of megabytes
  skip: noHosts,
});

const cast = castOf("claude-agent-child.ts");
const { of, run, start, resume, decide, elsewhere } = cast;

/** The calls of the run as the gate has recorded them. */
const recorded = async () => JSON.parse((await elsewhere("executed")).stdout);

// skip: the program is hundreds of megabytes
describe.skipIf(noHosts !== undefined)("tools that Claude Code executes itself", patient, () => {
  const tools = [
    ["bash", "Bash"],
    ["edit", "Edit"],
  ] as const;
  const wish = (tool: Wish["tool"], cents = 999): readonly Wish[] => {
    // An edit changes a file that is there.
    if (tool === "edit") writeFileSync(storyFile("ledger.txt"), "nothing yet\n");
    return [{ id: "1", tool, cents }];
  };
  const before = (tool: string) => (tool === "edit" ? ["nothing yet"] : []);

  test.each(tools)(
    "%s: an approved call runs once, under a permit that is reported",
    async (tool, name) => {
      expect((await start(wish(tool))).paused).toEqual(["1"]);
      await elsewhere("approve");
      happened(...before(tool));
      expect((await resume()).told["1"]).not.toMatch(/Not executed|error/i);
      happened("INV-1 999");
      const calls = await recorded();
      const [own] = calls.filter(({ executor }: { executor: string }) => executor !== "");
      expect(own).toEqual({ tool: name, status: "success", executor: "claude-code:run-1" });
      expect(await resume()).toEqual(STILL_WAITS);
      happened("INV-1 999");
    },
  );

  test.each(tools)("%s: a rejected call does not run, and the model is told why", async (tool) => {
    await start(wish(tool));
    await decide("reject", "not in production");
    expect((await resume()).told["1"]).toMatch(/not in production/);
    happened(...before(tool));
  });

  test.each(tools)(
    "%s: the changed call runs, and the model is told what changed",
    async (tool) => {
      await start(wish(tool));
      await decide("change");
      await elsewhere("approve");
      const { told } = await resume({ SEEN: "1" });
      happened("INV-1 100");
      expect(told["seen"]).toMatch(/ada changed your call: .*INV-1 100.* instead of .*INV-1 999/);
    },
  );

  test.each(tools)(
    "%s: resumed too early it waits, and a forced run executes nothing and tells the model that it waits",
    async (tool) => {
      await start(wish(tool));
      expect(await resume()).toEqual(STILL_WAITS);
      expect((await run(["force"])).told["1"]).toMatch(/wait/i);
      happened(...before(tool));
    },
  );

  test("a command that fails is reported as failed", async () => {
    await start(wish("bash", 555));
    await decide("approve");
    expect((await resume()).told["1"]).toMatch(/the invoice is closed/);
    const [permit] = await recorded();
    expect(permit).toMatchObject({ tool: "Bash", status: "failed" });
    happened();
  });

  const lease = { PERMIT_MS: "1000" };
  test.each(["killed", "interrupted"])(
    "a command that was %s is not repeated, and people are asked what happened",
    async (CUT_OFF) => {
      await start(wish("bash", LOST));
      await elsewhere("approve");
      const { signal } = await of(["resume"], { ...lease, CUT_OFF });
      expect(signal).toBe(CUT_OFF === "killed" ? "SIGKILL" : null);
      happened("INV-1 666");
      await elsewhere("recover");
      expect(await recorded()).toMatchObject([{ tool: "Bash", status: "unknown" }]);
      await elsewhere("happened");
      // The claim of the killed process to continue would have to run out first.
      if (CUT_OFF === "killed") expect((await run(["force"])).told["1"]).toMatch(/grace/);
      happened("INV-1 666");
    },
  );

  test("a call whose process was killed with the permit runs once, when a person says that it did not", async () => {
    await start(wish("bash"));
    await elsewhere("approve");
    const { signal } = await of(["resume"], { ...lease, KILL_AT: "S5.after" });
    expect(signal).toBe("SIGKILL");
    happened();
    await elsewhere("recover");
    await elsewhere("try again");
    // Claude Code has nothing to try again in that session; a new one asks for the same call of the run.
    expect((await start(wish("bash"))).told["1"]).not.toMatch(/Not executed|error/i);
    happened("INV-1 999");
  });

  test("a tool that nobody named is denied, and so is every call while the gate fails", async () => {
    const unnamed = await start(wish("write", 1));
    expect(unnamed.told["1"]).toMatch(/The gate does not know the tool Write/);
    const failing = await start(wish("bash", 2), { GATE: "fails" });
    expect(failing.told["1"]).toMatch(/hook error/);
    happened();
  });
});

// skip: the program is hundreds of megabytes
describe.skipIf(noHosts !== undefined)("what people read about it", patient, () => {
  test("the samples of the guide run and print what the page says", async () => {
    const page = readPage("docs/guide/claude-agent.md");
    using project = makeProject([page]);
    const { code, stdout, stderr } = await project.runPage(page, {});
    expect([stderr, stdout, code]).toEqual(["", outputOf(page), 0]);
  });

  test("the example runs, and is not skipped", async () => {
    const file = path.join(root, "examples/claude-agent/main.ts");
    const flags = ["--conditions=sallyport-source", "--disable-warning=ExperimentalWarning"];
    const { stdout } = await promisify(execFile)(process.execPath, [...flags, file]);
    expect(stdout).toMatch(/One refund, after one approval\.\n$/);
  });
});
