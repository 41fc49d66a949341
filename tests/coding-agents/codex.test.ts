// Stories of the published Codex behind the gate.

import { beforeAll, describe, expect, test } from "vitest";
import { HOSTS } from "../support/hosts/run-host.ts";
import { installHosts, noHosts } from "../support/hosts.ts";
import { record } from "../support/record.ts";
import type { Script } from "../support/scripted-model.ts";
import { approve, asks, openWorld, PERSON } from "./world.ts";

const { shell } = HOSTS.codex;

beforeAll(async () => {
  if (noHosts === undefined) await installHosts();
});

// skip: the program is hundreds of megabytes
describe.skipIf(noHosts !== undefined)("Codex", { timeout: 120_000 }, () => {
  test("a command that a rule denies does not run, and the model is told why", async () => {
    const world = await openWorld("codex");
    await world.run(asks(shell("call_1", "rm -rf src")));
    expect(world.told.get("call_1")).toMatch(/cannot be undone/);
  });

  test("a command that a rule allows runs", async () => {
    const world = await openWorld("codex", { commands: [["touch", "**"]] });
    const out = await world.run(asks(shell("call_1", "touch MARKER")));
    expect(world.has("MARKER"), `${world.told.get("call_1")} ${out.stdout}`).toBe(true);
  });

  test("a call that waits is denied with a handle, and the retry finds its approval", async () => {
    const world = await openWorld("codex");
    const first = await world.run(asks(shell("call_1", "echo ran >> LEDGER")));
    expect(world.told.get("call_1")).toMatch(/waits for a person/);
    expect(world.has("LEDGER")).toBe(false);
    await approve(world);
    const thread = threadIn(first.stdout);
    await world.run(again("echo ran >> LEDGER"), { resume: thread, prompt: "Approved. Again." });
    const twice = world.read("LEDGER").split("\n").length - 2;
    const figures = { stories: 1, "ungated effects": 0, twice: Math.max(0, twice) };
    record({ goal: "HOSTS-stories", what: "made again after its approval", figures });
    expect(world.read("LEDGER"), world.told.get("call_2")).toBe("ran\n");
  });

  test("the reviewer's edit is what runs, also after a restart of the server, and the model is told", async () => {
    const world = await openWorld("codex");
    const first = await world.run(asks(shell("call_1", "echo ten >> LEDGER")));
    const { gate } = world.served;
    const [question] = await gate.interactions.list();
    if (question === undefined) throw new Error("nothing was asked");
    const edited = { host: "codex", tool: "Bash", cwd: world.project };
    await gate.interactions.edit(question.id, {
      hash: question.hash,
      by: "person:bob",
      inputs: [{ ...edited, input: { command: "echo one >> LEDGER" } }],
    });
    await world.stop();
    await world.start();
    await approve(world);
    await world.run(again("echo ten >> LEDGER"), {
      resume: threadIn(first.stdout),
      prompt: "Again.",
    });
    expect(world.read("LEDGER")).toBe("one\n");
    expect(world.prompts()).toMatch(/person:bob changed your call/);
  });

  test("a rejected call does not run, and the retry is told the reason", async () => {
    const world = await openWorld("codex");
    const first = await world.run(asks(shell("call_1", "echo ran >> LEDGER")));
    const { gate } = world.served;
    for (const { id, hash } of await gate.interactions.list()) {
      await gate.interactions.reject(id, { hash, by: "person:ada", reason: "not today" });
    }
    await world.run(again("echo ran >> LEDGER"), {
      resume: threadIn(first.stdout),
      prompt: "Again.",
    });
    expect(world.has("LEDGER")).toBe(false);
    // A no is about one question: the same call is a new question, and the first one keeps its reason.
    expect(world.told.get("call_2")).toMatch(/waits for a person as decision/);
    expect(await gate.interactions.list()).toHaveLength(1);
    const [no] = await gate.decisions.list({ states: ["rejected_ml"] });
    expect(JSON.stringify(no)).toContain("not today");
  });

  test("of two calls in one turn that wait, each runs once when it is made again", async () => {
    const world = await openWorld("codex");
    const both = (round: string) => [
      shell(`call_1${round}`, "echo one >> LEDGER"),
      shell(`call_2${round}`, "echo two >> LEDGER"),
    ];
    const first = await world.run(asks(...both("")));
    expect(await world.served.gate.interactions.list()).toHaveLength(2);
    await approve(world);
    const script: Script = ({ results }) =>
      results.some(({ id }) => id === "call_1b") ? { text: "done" } : { calls: both("b") };
    await world.run(script, { resume: threadIn(first.stdout), prompt: "Again." });
    expect(world.read("LEDGER").trim().split("\n").sort()).toEqual(["one", "two"]);
  });

  test("a patch in a command is judged as an edit of its files", async () => {
    const world = await openWorld("codex");
    const patch = (file: string) =>
      `apply_patch <<'EOF'\n*** Begin Patch\n*** Add File: ${file}\n+hello\n*** End Patch\nEOF`;
    await world.run(
      asks(shell("call_1", patch("new.txt")), shell("call_2", patch(".git/hooks/x"))),
    );
    expect([world.has("new.txt"), world.has(".git/hooks/x")]).toEqual([true, false]);
    const { gate, store } = world.served;
    const [session] = await store.tenant("default").sessions.list({ after: 0, limit: 1 });
    const id = session?.id ?? "";
    // Codex says nothing about the patch; the end of the turn settles it.
    expect(await gate.operations.listBySession(id)).toMatchObject([
      { tool: "coding.edit", status: "success", callId: "call_1" },
    ]);
    const report = await gate.sessions.open({ id, agent: "codex" }).rollback(PERSON);
    expect([report.undone.length, world.has("new.txt")]).toEqual([1, false]);
  });
});

const threadIn = (stdout: string) => /"thread_id":"([^"]+)"/.exec(stdout)?.[1] ?? "";

const again =
  (command: string): Script =>
  ({ results }) =>
    results.some(({ id }) => id === "call_2")
      ? { text: "done" }
      : { calls: [shell("call_2", command)] };
