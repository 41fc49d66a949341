import { beforeAll, describe, expect, test } from "vitest";
import { installHosts, noHosts } from "../support/hosts.ts";
import { castOf, ledger, patient, storiesOf } from "./stories.ts";
import type { Wish } from "./world.ts";

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

const { run, start, decide, elsewhere } = castOf("claude-agent-child.ts");
const command: readonly Wish[] = [{ id: "1", tool: "bash", cents: 999 }];

// skip: the program is hundreds of megabytes
describe.skipIf(noHosts !== undefined)("tools that Claude Code executes itself", patient, () => {
  test("an approved command runs once, under a permit that is reported", async () => {
    expect((await start(command)).paused).toEqual(["1"]);
    await elsewhere("approve");
    expect(ledger()).toEqual([]);
    expect((await run(["resume"])).told["1"]).toMatch(/completed/);
    expect(ledger()).toEqual(["INV-1 999"]);
    expect(JSON.parse((await elsewhere("executed")).stdout)).toEqual([
      { tool: "Bash", status: "success", executor: "claude-code:run-1" },
    ]);
  });

  test("a rejected command does not run, and the model is told why", async () => {
    await start(command);
    await decide("reject", "not in production");
    expect((await run(["resume"])).told["1"]).toMatch(/not in production/);
    expect(ledger()).toEqual([]);
  });

  test("a command that fails is reported as failed", async () => {
    await start([{ id: "1", tool: "bash", cents: 555 }]);
    await decide("approve");
    expect((await run(["resume"])).told["1"]).toMatch(/the invoice is closed/);
    const [permit] = JSON.parse((await elsewhere("executed")).stdout);
    expect(permit).toMatchObject({ tool: "Bash", status: "failed" });
  });

  test("a tool that nobody named is denied, and so is every call while the gate fails", async () => {
    const unnamed = await start([{ id: "1", tool: "write", cents: 1 }]);
    expect(unnamed.told["1"]).toMatch(/The gate does not know the tool Write/);
    const failing = await start([{ id: "1", tool: "bash", cents: 2 }], { GATE: "fails" });
    expect(failing.told["1"]).toMatch(/hook error/);
    expect(ledger()).toEqual([]);
  });
});
