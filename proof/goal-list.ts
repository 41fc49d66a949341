import type { Goal } from "./goals.ts";

const NOTHING_LOST = ["lost", "twice", "violations"] as const;

/** What the tests record, by goal; the least of the full proof is the floor of the threat model. */
export const GOALS: readonly Goal[] = [
  {
    id: "G1",
    what: "sustained load on SQLite, one process",
    zero: [...NOTHING_LOST, "unexplained"],
    least: { proof: { calls: 1_500, effects: 500 }, full: { calls: 144_000, effects: 50_000 } },
  },
  {
    id: "G2",
    what: "sustained load on PostgreSQL, three servers",
    zero: [...NOTHING_LOST, "unexplained"],
    least: { proof: { calls: 1_000, effects: 300 }, full: { calls: 216_000, effects: 50_000 } },
  },
  {
    id: "G2-kill",
    what: "two servers and two workers over one PostgreSQL, killed at random under load",
    zero: [...NOTHING_LOST, "unexplained"],
    least: { proof: { kills: 8, effects: 20 }, full: { kills: 60, effects: 120 } },
  },
  {
    id: "G3",
    what: "pending questions over restarts",
    zero: ["violations"],
    least: { proof: { restarts: 4 }, full: { restarts: 100 } },
    most: { "ready max ms": 5_000 },
  },
  {
    id: "G4",
    what: "shared task list, workers killed and paused, histories linearizable",
    zero: ["unfinished", "not linearizable", "violations"],
    least: { proof: { tasks: 500 }, full: { tasks: 40_000 } },
  },
  {
    id: "G5",
    what: "kill -9 at random moments, full mix",
    zero: ["violations"],
    least: { proof: { kills: 40, effects: 20 }, full: { kills: 900, effects: 300 } },
  },
  {
    id: "G6",
    what: "kill -9 at each named point of call, bundle and undo",
    zero: ["violations"],
    least: { proof: { crashes: 30 }, full: { crashes: 1_000 } },
  },
  {
    id: "G7",
    what: "death, EIO or ENOSPC at durable system calls",
    zero: [...NOTHING_LOST, "executions while failing", "false nothing was written"],
    least: { proof: { points: 16, killed: 1 }, full: { points: 2_000, killed: 10 } },
  },
  {
    id: "G8",
    what: "PostgreSQL killed, stopped, connections ended in a commit",
    zero: NOTHING_LOST,
    least: {
      proof: { kills: 3, stops: 3, terminations: 15, ambiguous: 1 },
      full: { kills: 20, stops: 20, terminations: 50, ambiguous: 10 },
    },
    most: { "back after ms, max": 10_000 },
  },
  {
    id: "G9",
    what: "disk full and back",
    zero: [...NOTHING_LOST, "executions while full"],
    least: { proof: { times: 3 }, full: { times: 10 } },
    most: { "back after ms, max": 10_000 },
  },
  {
    id: "G10",
    what: "line between worker and database cut",
    zero: [...NOTHING_LOST, "stale writes accepted", "false nothing was written"],
    least: { proof: { cuts: 8 }, full: { cuts: 20 } },
  },
  {
    id: "G11",
    what: "processes stopped beyond their lease",
    zero: ["violations"],
    least: { proof: { pauses: 4 }, full: { pauses: 20 } },
  },
  {
    id: "G12",
    what: "clocks that jump, stand still and run back",
    zero: ["violations"],
    least: { proof: { jumps: 10 }, full: { jumps: 50 } },
  },
  {
    id: "G13",
    what: "torn and corrupt files",
    zero: ["served as good"],
    least: { proof: { mutations: 400 }, full: { mutations: 500 } },
  },
  {
    id: "G14",
    what: "deterministic simulation",
    zero: ["violations"],
    least: { proof: { seeds: 1_000, steps: 200_000 }, full: { seeds: 20_000, steps: 4_000_000 } },
  },
  {
    id: "G15",
    what: "model-based sequences on all stores",
    zero: ["violations"],
    least: { proof: { sequences: 2_000 }, full: { sequences: 10_000 } },
  },
  {
    id: "G16",
    what: "bad input over HTTP and on the command line",
    zero: ["crashes", "5xx or no code", "faults", "polluted"],
    least: { proof: { requests: 20_000 }, full: { requests: 100_000 } },
    most: { "own stall p99.9 ms": 100, "heap growth %": 10 },
  },
  {
    id: "G17",
    what: "canonicaliser and hash against a second implementation",
    zero: ["disagreements", "collisions"],
    least: { proof: { inputs: 50_000 }, full: { inputs: 1_000_000 } },
  },
  {
    id: "G18",
    what: "feed with listeners whose lines break",
    zero: ["out of order, missing or double", "foreign", "cut short"],
    least: {
      proof: { listeners: 20, reconnects: 100 },
      full: { listeners: 100, reconnects: 1_000 },
    },
  },
  {
    id: "G19",
    what: "corpus of defects, threats, AISVS 1.0",
    zero: [],
    least: {
      proof: { "corpus rows with a test": 30, "threats with a test": 20 },
      full: { "corpus rows with a test": 30, "threats with a test": 20 },
    },
  },
  {
    id: "G20",
    what: "verifying the trail",
    zero: ["violations"],
    least: { proof: { entries: 50_000 }, full: { entries: 1_000_000 } },
  },
  {
    id: "G21",
    what: "backup, restore, restart",
    zero: ["re-executions", "executed before it was noticed"],
    least: {
      proof: { drills: 10, "rollbacks noticed": 10 },
      full: { drills: 10, "rollbacks noticed": 10 },
    },
  },
  attack("T1", "calls of a hijacked agent", "calls", 1_000, 10_000, [
    "ungated effects",
    "unanswered",
  ]),
  attack("T2", "decoys and a blind reviewer", "questions", 1_000, 1_000, ["decoys executed"]),
  attack("T3", "changes between approval and execution", "mutations", 2_000, 100_000, ["executed"]),
  attack("T4", "a world that changes", "rounds", 360, 6_000, [
    "stale executions",
    "false refusals",
  ]),
  attack("T6", "self-approval on every way", "attempts", 1_000, 1_000, ["accepted"]),
  attack("T7", "approvals replayed", "replays", 50, 1_000, ["second uses"]),
  attack("T13", "hidden characters on screen", "texts", 100, 5_000, ["hidden", "active"]),
  attack("T14", "summaries that lie", "pairs", 10, 200, ["wrong"]),
  attack("T15", "scripts in every field", "texts", 100, 1_000, ["fired", "violations"]),
  attack("T20", "one tenant with the ids of another", "calls", 1_000, 100_000, ["leaks"]),
  attack("T26", "prototypes in every place", "requests", 1_000, 100_000, ["polluted"]),
  attack("T27", "hostile patterns and texts", "patterns", 100, 1_000, ["violations"]),
  attack("T32", "shell gate against bash and dash", "generated", 10_000, 200_000, [
    "unseen",
    "understood bypasses",
  ]),
  attack("T33", "random trees of delegations", "trees", 200, 10_000, ["widenings", "after revoke"]),
  {
    id: "T39",
    what: "one tenant floods, another works on",
    zero: [],
    least: { proof: { "asked to slow down": 500 }, full: { "asked to slow down": 10_000 } },
    most: { "decision p99 ms": 500 },
  },
  attack("T35", "changed trails", "mutations", 900, 9_000, ["missed"]),
  {
    id: "FAILOVER",
    what: "a primary dies under load, and its standby takes over",
    zero: ["lost", "twice"],
    least: {
      proof: { failovers: 2, acknowledged: 150 },
      full: { failovers: 11, acknowledged: 1_500 },
    },
    most: { "recovery ms": 30_000 },
  },
  {
    id: "MCP-conformance",
    what: "a server through the gateway passes every check that it passes directly",
    zero: ["differences"],
    least: { proof: { checks: 200 }, full: { checks: 200 } },
  },
  {
    id: "MCP-wire",
    what: "what of a call reaches a published server before its approval",
    zero: ["bytes upstream before approval"],
    least: { proof: { calls: 20 }, full: { calls: 20 } },
  },
  {
    id: "MCP-servers",
    what: "published MCP servers behind the gateway",
    zero: ["bytes upstream before approval", "ungated effects", "effects twice"],
    least: { proof: { servers: 7 }, full: { servers: 7 } },
  },
  {
    id: "MCP-fuzz",
    what: "hostile messages from both sides of the gateway",
    zero: ["crashes", "unanswered"],
    least: { proof: { messages: 10_000 }, full: { messages: 50_000 } },
  },
  {
    id: "MCP-kill",
    what: "the gateway killed at random",
    zero: NOTHING_LOST,
    least: { proof: { kills: 100 }, full: { kills: 300 } },
  },
  {
    id: "HOSTS-contract",
    what: "each published coding agent against each row of the hook's contract",
    zero: ["ungated effects"],
    least: { proof: { rows: 20 }, full: { rows: 20 } },
  },
  {
    id: "HOSTS-stories",
    what: "stories with published coding agents",
    zero: ["ungated effects", "twice"],
    least: { proof: { stories: 4 }, full: { stories: 4 } },
  },
  {
    id: "ADAPTERS",
    what: "stories with published frameworks: stopped, decided elsewhere, continued in a third process",
    zero: ["lost", "twice", "ungated"],
    least: { proof: { stories: 60, effects: 40 }, full: { stories: 60, effects: 40 } },
  },
];

function attack(
  id: string,
  what: string,
  counted: string,
  proof: number,
  full: number,
  zero: readonly string[],
): Goal {
  return { id, what, zero, least: { proof: { [counted]: proof }, full: { [counted]: full } } };
}
