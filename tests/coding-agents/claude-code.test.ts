// Stories of the published Claude Code behind the gate.

import { execFileSync } from "node:child_process";
import { closeSync, constants, openSync } from "node:fs";
import path from "node:path";
import { beforeAll, describe, expect, test } from "vitest";
import { HOSTS } from "../support/hosts/run-host.ts";
import { installHosts, noHosts } from "../support/hosts.ts";
import { record } from "../support/record.ts";
import type { Script } from "../support/scripted-model.ts";
import { approve, asks, openWorld, PERSON, type World } from "./world.ts";

const { shell } = HOSTS["claude-code"];

beforeAll(async () => {
  if (noHosts === undefined) await installHosts();
});

// skip: the program is hundreds of megabytes
describe.skipIf(noHosts !== undefined)("Claude Code", { timeout: 120_000 }, () => {
  test("a command that a rule denies does not run, and the model is told why", async () => {
    const world = await openWorld("claude-code");
    await world.run(asks(shell("toolu_1", "rm -rf src")));
    expect(world.told.get("toolu_1")).toMatch(/cannot be undone/);
  });

  test("a command that a rule allows runs without a question and is recorded", async () => {
    const world = await openWorld("claude-code", { commands: [["touch", "**"]] });
    await world.run(asks(shell("toolu_1", "touch MARKER")));
    expect(world.has("MARKER"), world.told.get("toolu_1")).toBe(true);
    const { store, gate } = world.served;
    const [session] = await store.tenant("default").sessions.list({ after: 0, limit: 1 });
    expect(await gate.operations.listBySession(session?.id ?? "")).toMatchObject([
      { tool: "coding.shell", status: "success", executor: "claude-code", callId: "toolu_1" },
    ]);
    expect(await gate.interactions.list()).toEqual([]);
  });

  test("a headless call is deferred, approved later and runs once", async () => {
    const world = await openWorld("claude-code");
    const call = asks(shell("toolu_1", "touch MARKER && echo ran >> LEDGER"));
    const first = JSON.parse((await world.run(call)).stdout);
    expect(first).toMatchObject({ stop_reason: "tool_deferred" });
    expect(world.has("MARKER")).toBe(false);
    await approve(world);
    await world.run(call, { resume: first.session_id, prompt: "" });
    const twice = world.read("LEDGER").split("\n").length - 2;
    const figures = { stories: 1, "ungated effects": 0, twice: Math.max(0, twice) };
    record({ goal: "HOSTS-stories", what: "deferred, approved later", figures });
    expect(world.read("LEDGER")).toBe("ran\n");
  });

  test("a rejected call does not run, and the model is told the reason", async () => {
    const world = await openWorld("claude-code");
    const call = asks(shell("toolu_1", "curl http://127.0.0.1:9/"));
    const { session_id: resume } = JSON.parse((await world.run(call)).stdout);
    const { gate } = world.served;
    for (const { id, hash } of await gate.interactions.list()) {
      await gate.interactions.reject(id, { hash, by: PERSON, reason: "not today" });
    }
    await world.run(call, { resume, prompt: "" });
    expect(world.told.get("toolu_1")).toMatch(/not today/);
  });

  test("the reviewer's edit is what runs, and the model is told", async () => {
    const world = await openWorld("claude-code");
    const call = asks(shell("toolu_1", "echo ten >> LEDGER"));
    const { session_id: resume } = JSON.parse((await world.run(call)).stdout);
    const { gate } = world.served;
    const [question] = await gate.interactions.list();
    if (question === undefined) throw new Error("nothing was asked");
    const input = {
      host: "claude-code",
      tool: "Bash",
      cwd: world.project,
      input: { command: "echo one >> LEDGER", description: "go" },
    };
    await gate.interactions.edit(question.id, {
      hash: question.hash,
      by: "person:bob",
      inputs: [input],
    });
    await approve(world);
    await world.run(call, { resume, prompt: "" });
    expect(world.read("LEDGER")).toBe("one\n");
    expect(`${world.told.get("toolu_1")} ${world.prompts()}`).toMatch(
      /person:bob changed your call/,
    );
  });

  test("a call that waits survives a restart of the server, and runs once", async () => {
    const world = await openWorld("claude-code");
    const call = asks(shell("toolu_1", "echo ran >> LEDGER"));
    const { session_id: resume } = JSON.parse((await world.run(call)).stdout);
    await world.stop();
    await world.start();
    await approve(world);
    await world.run(call, { resume, prompt: "" });
    await world.run(call, { resume, prompt: "Again." });
    expect(world.read("LEDGER")).toBe("ran\n");
  });

  test("of two calls in one turn that wait, neither is lost and each runs once", async () => {
    const world = await openWorld("claude-code");
    const [one, two] = [
      shell("toolu_1", "echo one >> LEDGER"),
      shell("toolu_2", "echo two >> LEDGER"),
    ];
    const script: Script = ({ results }) => {
      if (results.length === 0) return { calls: [one, two] };
      const again = results.find(
        ({ id, text }) => /Make this call again/.test(text) && !/_again/.test(id),
      );
      const isTold = results.some(({ id }) => /_again/.test(id));
      if (again === undefined || isTold) return { text: "done" };
      const call = again.id === "toolu_1" ? one : two;
      return { calls: [{ ...call, id: `${again.id}_again` }] };
    };
    const { session_id: resume } = JSON.parse((await world.run(script)).stdout);
    expect(await world.served.gate.interactions.list()).toHaveLength(2);
    await approve(world);
    await world.run(script, { resume, prompt: "" });
    expect(world.read("LEDGER").trim().split("\n").sort()).toEqual(["one", "two"]);
  });

  test("a server that is down denies, and says how to start it", async () => {
    const world = await openWorld("claude-code");
    await world.stop();
    await world.run(asks(shell("toolu_1", "touch MARKER")));
    expect(world.told.get("toolu_1")).toMatch(/Start it with: sallyport serve --data/);
    expect(world.has("MARKER")).toBe(false);
  });

  test("a host that is killed while its tool runs leaves a call that is not reported", async () => {
    const world = await openWorld("claude-code");
    execFileSync("mkfifo", [path.join(world.project, "pipe")]);
    const stop = new AbortController();
    const run = world.run(asks(shell("toolu_1", "cat pipe")), { signal: stop.signal });
    await expect.poll(async () => heldIn(world), { timeout: 60_000 }).toBe(1);
    stop.abort();
    endReader(path.join(world.project, "pipe"));
    await run;
    expect(await heldIn(world)).toBe(1);
  });
});

/** Ends a reader that outlives its host; without one there is nothing to open. */
function endReader(pipe: string): void {
  try {
    closeSync(openSync(pipe, constants.O_WRONLY | constants.O_NONBLOCK));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ENXIO") throw error;
  }
}

async function heldIn({ served: { store } }: World): Promise<number> {
  return (await store.tenant("default").operations.listAbandoned(10, "held")).length;
}
