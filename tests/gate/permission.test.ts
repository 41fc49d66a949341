// The permission check as calls meet it: the class of a tool selects it, and nothing else.

import { mkdtemp, realpath, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { expect, onTestFinished, test } from "vitest";
import type { GateOptions } from "../../src/gate/options.ts";
import { defineTool } from "../../src/tools/define-tool.ts";
import { createRegistry } from "../../src/tools/registry.ts";
import type { PermissionClass, SafetySheet } from "../../src/tools/tool.ts";
import { AGENT, openGate, request, rules } from "../support/port-world.ts";

/** A tool that may touch a file, a command or a host, as its input says. */
function act(name: string, permissionClass: PermissionClass | "", run: string[] = []) {
  return defineTool({
    name,
    description: "Acts.",
    input: { type: "object", additionalProperties: { type: "string" } },
    ...(permissionClass === "" ? {} : { permissionClass }),
    resources: ({ input }) => {
      if ("file" in input) {
        return [{ kind: "file", path: String(input["file"]), access: "write" } as const];
      }
      if ("command" in input) return [{ kind: "command", command: String(input["command"]) }];
      return "url" in input ? [{ kind: "url", url: String(input["url"]) } as const] : [];
    },
    execute({ input }) {
      run.push(`${name} ${JSON.stringify(input)}`);
      return "acted";
    },
  });
}

function open(tools: GateOptions["tools"], over: Partial<GateOptions> = {}) {
  const { gate } = openGate({ ...(tools === undefined ? {} : { tools }), ...over });
  let calls = 0;
  return async (tool: string, input: Record<string, string> = {}, workingDirectory = "") => {
    calls += 1;
    const session = gate.sessions.open({ agent: AGENT, workingDirectory });
    return (await session.call(request(tool, input, `c-${calls}`))).answer;
  };
}

test("each class has its own check: commands, files, hosts, nothing, rules, and rules again [S2-42]", async () => {
  const folder = await realpath(await mkdtemp(path.join(tmpdir(), "sallyport-classes-")));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  const classes = ["bash", "file", "webfetch", "readonly", "generic", ""] as const;
  const call = open(
    classes.map((one) => act(`act.${one || "none"}`, one)),
    {
      fileRoots: [{ path: folder, access: "write" }],
      policy: rules(
        { id: "ls", effect: "allow", tool: "act.bash", command: ["ls"], folder, reason: "r" },
        {
          id: "docs",
          effect: "allow",
          tool: "act.webfetch",
          host: "docs.example.com",
          reason: "r",
        },
        {
          id: "g",
          effect: "allow",
          tool: "act.generic",
          input: [{ at: "$.a", equals: "ok" }],
          reason: "r",
        },
        {
          id: "n",
          effect: "allow",
          tool: "act.none",
          input: [{ at: "$.a", equals: "ok" }],
          reason: "r",
        },
      ),
    },
  );
  expect(await call("act.bash", { command: "ls" }, folder)).toBe("done");
  expect(await call("act.bash", { command: "ls && touch x" }, folder)).toBe("pending");
  expect(await call("act.bash", { command: "ls; rm -rf /" }, folder)).toBe("denied");
  expect(await call("act.file", { file: path.join(folder, "a.txt") })).toBe("done");
  expect(await call("act.file", { file: "/elsewhere/a.txt" })).toBe("pending");
  expect(await call("act.file", { file: path.join(folder, ".sallyport/key") })).toBe("denied");
  expect(await call("act.webfetch", { url: "https://docs.example.com/page" })).toBe("done");
  expect(
    await call("act.webfetch", { url: "https://other.example.com/docs.example.com.com" }),
  ).toBe("pending");
  expect(await call("act.readonly")).toBe("done");
  for (const tool of ["act.generic", "act.none"]) {
    expect(await call(tool, { a: "ok" })).toBe("done");
    expect(await call(tool, { a: "else" })).toBe("pending");
  }
});

test("a readonly tool runs unless a rule denies it; one that only says it reads is asked about [I-20]", async () => {
  const says = defineTool({
    name: "says.read",
    description: "Says that it only reads.",
    input: { type: "object" },
    safety: { effect: "read", concurrencySafe: true },
    execute: () => "read",
  });
  const tools = [act("look", "readonly"), act("write", "generic"), says];
  const free = open(tools);
  expect(await free("look")).toBe("done");
  expect(await free("write")).toBe("pending");
  expect(await free("says.read")).toBe("pending");
  const bound = open(tools, {
    policy: rules(
      { id: "no", effect: "deny", tool: "look", reason: "closed" },
      { id: "yes", effect: "allow", tool: "write", reason: "open" },
    ),
  });
  expect(await bound("look")).toBe("denied");
  expect(await bound("write")).toBe("done");
});

test("a tool is checked by the class it was registered with, in each registry by itself [S2-43 I-18]", async () => {
  const [one, other] = [createRegistry(), createRegistry()];
  const [first, second] = [open(one), open(other)];
  expect(await first("act"), "not registered").toBe("failed");
  one.register(act("act", "readonly"));
  other.register(act("act", "generic"));
  expect(await first("act")).toBe("done");
  expect(await second("act")).toBe("pending");
  one.unregister("act");
  one.register(act("act", "bash"));
  expect(await first("act", { command: "rm -rf /" })).toBe("denied");
  expect(() => one.register(act("odd", "root" as never))).toThrow();
});

test("what a tool says of itself besides its class changes no permission [S2-18 S2-38]", async () => {
  const told = (name: string, safety: SafetySheet, permissionClass: PermissionClass) =>
    defineTool({
      name,
      description: "Acts.",
      input: { type: "object" },
      permissionClass,
      safety,
      execute: () => "acted",
    });
  const effects = ["read", "write", "external"] as const;
  const sheets = effects.flatMap((effect) => [
    { effect },
    { effect, destructive: effect !== "read" },
    { effect, concurrencySafe: true },
    { effect, affects: ["database"] },
  ]);
  for (const permissionClass of ["generic", "readonly"] as const) {
    const call = open(sheets.map((sheet, index) => told(`t${index}`, sheet, permissionClass)));
    const answers = await Promise.all(sheets.map((_, index) => call(`t${index}`)));
    expect(new Set(answers)).toEqual(new Set([permissionClass === "generic" ? "pending" : "done"]));
  }
});

test("a gate policy that throws denies in its own name; one cannot change what the others see [I-57 I-58]", async () => {
  const run: string[] = [];
  const seen: unknown[] = [];
  const scribbles = {
    name: "scribbles",
    points: ["pre-tool"] as const,
    check: (context: { readonly payload?: unknown }) => {
      (context.payload as { input: { a: string } }).input.a = "changed";
      return [];
    },
  };
  const watches = {
    name: "watches",
    points: ["pre-tool"] as const,
    check: (context: { readonly payload?: unknown }) => {
      seen.push((context.payload as { input: unknown }).input);
      return [];
    },
  };
  const { gate } = openGate({
    tools: [act("look", "readonly", run)],
    gatePolicies: [scribbles, watches],
  });
  const answer = await gate.sessions
    .open({ agent: AGENT })
    .call(request("look", { a: "as given" }));
  expect(answer).toMatchObject({ answer: "denied", text: expect.stringContaining("scribbles") });
  expect(seen, "the others are asked all the same").toEqual([{ a: "as given" }]);
  expect(run).toEqual([]);
});

test("where no one may decide, a call that would be asked about is denied [I-24]", async () => {
  const tools = [act("write", "generic"), act("look", "readonly")];
  const call = open(tools, { people: [] });
  expect(await call("write")).toBe("denied");
  expect(await call("look")).toBe("done");
  expect(await open(tools, { people: [{ id: "person:ada" }] })("write")).toBe("pending");
});

test("a rule for a toolEffect allows the tools that declare it, and no others [I-20]", async () => {
  const of = (name: string, effect: "read" | "write") =>
    defineTool({
      name,
      description: "Acts.",
      input: { type: "object" },
      safety: { effect },
      execute: () => "acted",
    });
  const policy = rules({
    id: "r",
    effect: "allow",
    tool: "*",
    toolEffect: "read",
    reason: "it only reads",
  });
  const call = open([of("look", "read"), of("write", "write")], { policy });
  expect(await call("look")).toBe("done");
  expect(await call("write")).toBe("pending");
});
