import { expect, test } from "vitest";
import type { Session } from "../../src/gate/session.ts";
import type { CallAnswer } from "../../src/model/operation.ts";
import type { GatePolicy } from "../../src/policy/decide.ts";
import {
  AGENT,
  approve,
  collected,
  decisionIdOf,
  type GateWorld,
  openGate,
  PERSON,
  request,
  rules,
} from "../support/port-world.ts";

const allowSet = rules({ id: "set", effect: "allow", tool: "world.set", reason: "a test" });
const denySet = rules({ id: "no", effect: "deny", tool: "world.set", reason: "closed today" });

/** A door in the gate that counts who comes by and can be closed at any moment. */
function door() {
  const seen: string[] = [];
  const state = { closed: false };
  const policy: GatePolicy = {
    name: "door",
    points: ["pre-tool"],
    check({ tool = "" }) {
      seen.push(tool);
      return state.closed ? [{ severity: "hard-deny", policy: "door", message: "closed" }] : [];
    },
  };
  return { seen, state, policy };
}

const set = (value: number) => request("world.set", { key: "a", value });

interface Way {
  /** Everything that may happen while the door is still open. */
  prepare?(session: Session, world: GateWorld): Promise<unknown>;
  go(session: Session, world: GateWorld, prepared: unknown): Promise<unknown>;
  /** How many effects each has. */
  readonly before: number;
  readonly after: number;
}

const WAYS: Readonly<Record<string, Way>> = {
  "direct call": { before: 0, after: 1, go: (session) => session.call(set(1)) },
  "call by an alias": {
    before: 0,
    after: 1,
    go: (session) => session.call({ ...set(1), tool: "world.put" }),
  },
  batch: {
    before: 0,
    after: 2,
    go: (session) => collected(session.callAll([set(1), set(2)])),
  },
  "staged bundle": {
    before: 0,
    after: 2,
    async go(session, { gate }) {
      const answer = await session.stage([set(1), request("world.set", { key: "b", value: 2 })]);
      return answer.answer === "pending" ? approve(gate, answer.decisionId) : answer;
    },
  },
  "resumed call after approval": {
    before: 0,
    after: 1,
    prepare: async (session) => decisionIdOf(await session.stage([set(1)])),
    // A denial may be an answer or a refusal to go on; what counts is that nothing happens.
    go: (_, { gate }, id) => approve(gate, String(id)).catch((error: unknown) => error),
  },
  undo: {
    before: 1,
    after: 2,
    prepare: (session) => session.call(set(1)),
    go: (session) => session.rollback(PERSON),
  },
};

for (const [name, way] of Object.entries(WAYS)) {
  test(`${name}: passes the one gate, and a gate that has closed is hit [R3 I-26]`, async () => {
    for (const closed of [false, true]) {
      const { seen, state, policy } = door();
      const world = openGate({ policy: allowSet, gatePolicies: [policy] });
      const session = world.gate.sessions.open({ id: "s-1", agent: AGENT });
      const prepared = await way.prepare?.(session, world);
      expect(world.effects).toHaveLength(way.before);
      state.closed = closed;
      const before = seen.length;
      await way.go(session, world, prepared);
      expect(world.effects).toHaveLength(closed ? way.before : way.after);
      // Not only refused: refused by this very gate, asked once more for this very way.
      expect(seen.length).toBeGreaterThan(before);
      expect(new Set(seen)).toEqual(new Set(["world.set"]));
    }
  });

  test(`${name}: rules that deny since the last restart are hit [R3 I-26 T5]`, async () => {
    const world = openGate({ policy: allowSet });
    const early = world.gate.sessions.open({ id: "s-1", agent: AGENT });
    const prepared = await way.prepare?.(early, world);
    const gate = world.again({ policy: denySet });
    const session = gate.sessions.open({ id: "s-1", agent: AGENT });
    await way.go(session, { ...world, gate }, prepared);
    expect(world.effects).toHaveLength(way.before);
  });
}

test("a sub-agent's call is judged like its parent's, with the whole chain in view [I-26]", async () => {
  const chains: unknown[] = [];
  const watch: GatePolicy = {
    name: "watch",
    points: ["pre-tool"],
    check({ payload }) {
      chains.push((payload as { chain: unknown }).chain);
      return [];
    },
  };
  const { gate, effects } = openGate({ policy: denySet, gatePolicies: [watch] });
  const session = gate.sessions.open({ agent: "agent:sub", delegatedBy: [AGENT, PERSON] });
  expect((await session.call(set(1))).answer).toBe("denied");
  expect(chains).toEqual([["agent:sub", AGENT, PERSON]]);
  expect(effects).toEqual([]);
});

const oneCommand = rules({
  id: "tests",
  effect: "allow",
  tool: "world.shell",
  class: "bash",
  command: ["npm", "test"],
  folder: "/work",
  expiresAt: "2026-11-15T07:00:00.000Z",
  reason: "tests may run",
});

// biome-ignore format: a table
const SMUGGLED: readonly string[] = [
  // R4 R6: the shell was trusted, not the command.
  "sh -c 'rm x'", "sh -lc 'rm x'", "bash -c 'npm test; rm x'", "bash -lc 'npm test && rm x'", "/bin/sh -c 'rm x'",
  "zsh -c 'rm x'", "dash -ec 'rm x'", "sh -c \"$CMD\"", "sh", "sh <<< 'rm x'", "sh script.sh", "eval 'rm x'", "exec rm x",
  // R5: a carrier in front.
  "env rm x", "env sh -c 'rm x'", "env -S 'sh -c \"rm x\"'", "env -i sh -c 'rm x'", "env A=1 rm x", "nohup rm x", "nice -n 5 rm x",
  "timeout 5 rm x", "xargs rm", "command rm x", "builtin eval rm", "sudo npm test", "stdbuf -o0 rm x", "time rm x", "setsid rm x",
  "find . -exec rm {} ;", "python3 -c 'import os'", "perl -e 'unlink x'", "node -e 'x'", "awk 'BEGIN{system(\"rm x\")}'", "npx rm",
  // R7: one program that is many.
  "busybox rm x", "busybox sh -c 'rm x'", "toybox rm x", "/bin/busybox rm x", "busybox env rm x",
  // R8: another program of that name.
  "./env npm test", "/tmp/env npm test", "./nohup npm test", "./sh -c 'npm test'", "/tmp/bash -c 'npm test'", "./timeout 5 npm test",
  "./busybox npm test", "./nice npm test", "x/xargs npm test", "./env env npm test", "env ./env npm test",
  "./npm test", "/tmp/npm test", "../npm test", "~/npm test", "bin/npm test", "NPM test", "npm.sh test",
  // The trusted command as a door: neighbours, pipes, substitutions, redirections, surroundings.
  "npm test; rm x", "npm test && rm x", "npm test || rm x", "npm test | sh", "npm test & rm x", "npm test\nrm x", "npm test > /etc/x",
  "npm test $(rm x)", "npm test `rm x`", "npm $(echo test)", "$(npm test)", "npm test <(rm x)", "PATH=/evil npm test",
  "LD_PRELOAD=/e.so npm test", "npm(){ rm x; }; npm test", "alias npm=rm; npm test", "npm test --prefix /evil", "npm test extra",
  "npm run test", "npm", "npm 'test extra'", "npm te*", "npm $T", "(rm x; npm test)", "{ rm x; npm test; }", "! rm x", "",
];

test("a rule for one command releases no other, however it is wrapped [R4 R5 R6 R7 R8]", async () => {
  const { gate, effects, clock } = openGate({ policy: oneCommand });
  const session = gate.sessions.open({ agent: AGENT, workingDirectory: "/work" });
  const run = (command: string): Promise<CallAnswer> =>
    session.call(request("world.shell", { command }));
  expect((await run("npm test")).answer).toBe("done");
  expect(effects).toHaveLength(1);
  const released: string[] = [];
  for (const command of SMUGGLED) {
    if ((await run(command)).answer === "done") released.push(command);
  }
  expect(released).toEqual([]);
  expect(effects).toHaveLength(1);
  // R4: a standing rule ends.
  clock.advance(3_600_000);
  expect((await run("npm test")).answer).toBe("pending");
});

test("a rule that would trust a shell, a wrapper or busybox is no rule [R4 R5 R6 R7]", () => {
  const carriers = [
    ["sh", "-c", "**"],
    ["bash", "-lc", "**"],
    ["/bin/sh", "**"],
    ["env", "**"],
    ["busybox", "**"],
    ["busybox", "sh", "-c", "*"],
    ["sudo", "npm", "test"],
    ["xargs", "**"],
  ];
  for (const command of carriers) {
    const policy = rules({
      id: "wide",
      effect: "allow",
      tool: "world.shell",
      command,
      reason: "handy",
    });
    expect(() => openGate({ policy }), command.join(" ")).toThrow(/runs other programs/);
  }
});

test("what a person approved by its bare name is what runs, and nothing else [R8]", async () => {
  const { gate, effects } = openGate({ policy: oneCommand });
  const session = gate.sessions.open({ agent: AGENT, workingDirectory: "/work" });
  const bare = await session.call(request("world.shell", { command: "make all" }));
  await approve(gate, decisionIdOf(bare));
  expect(effects).toEqual(['world.shell {"command":"make all"}']);
  // One yes is for one call: neither the same again nor its look-alike is free now.
  for (const command of ["make all", "./make all"]) {
    const again = await session.call(request("world.shell", { command }));
    expect(again.answer).toBe("pending");
  }
  expect(effects).toHaveLength(1);
});
