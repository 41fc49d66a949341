import { expect, test } from "vitest";
import { seededRandom } from "../util/random.ts";
import { defineTool } from "./define-tool.ts";
import { createRegistry, nameSkeleton } from "./registry.ts";
import type { Tool } from "./tool.ts";

const template = defineTool({
  name: "x",
  description: "d",
  input: { type: "object" },
  execute: () => "",
});

function tool(name: string, aliases: readonly string[] = []): Tool {
  return { ...template, name, metadata: { aliases } };
}

function problemOf(register: () => void): string {
  try {
    register();
  } catch (error) {
    return String(error);
  }
  return "accepted";
}

const SERVERS = ["billing", "github", "mail", "db", "calendar"];
const VERBS = [
  "refund_invoice",
  "create-issue",
  "send",
  "list_rows",
  "delete",
  "lookup",
  "mergePullRequest",
  "import",
  "tool1",
  "drop_10_items",
];
const NAMES = SERVERS.flatMap((server) => VERBS.map((verb) => `${server}.${verb}`));

/** Ways to write a name that a hurried reader takes for the same. */
const SWAPS: Readonly<Record<string, readonly string[]>> = {
  l: ["1", "I", "i"],
  i: ["l", "1", "I", "L"],
  o: ["0", "O"],
  m: ["rn", "M", "RN"],
  s: ["5", "S"],
  b: ["8", "B"],
  z: ["2"],
  w: ["vv"],
  "1": ["l", "I"],
  "0": ["o", "O"],
  _: ["-", ".", "", "__", "_-"],
  "-": ["_", ".", ""],
  ".": ["_", "-", "..", ""],
  a: ["A", "а", "ɑ", "á"],
  e: ["E", "е", "é"],
  c: ["C", "с"],
  d: ["D", "ԁ"],
  r: ["R", "г"],
  t: ["T", "т"],
  u: ["U", "υ"],
};
/** Invisible, turning and combining characters, put in anywhere. */
const INVISIBLE = [
  "\u200b",
  "\u200d",
  "\u00ad",
  "\u202e",
  "\u0301",
  "\ufeff",
  "\u{e0041}",
  "\u00a0",
  "\0",
  "\n",
  " ",
];

test("rejects all of 10,000 look-alikes of 50 names [T11]", () => {
  const random = seededRandom("look-alikes");
  const int = (below: number) => new DataView(random.bytes(4).buffer).getUint32(0) % below;
  const registry = createRegistry();
  for (const name of NAMES) registry.register(tool(name));
  const accepted: string[] = [];
  const tried = new Set<string>();
  while (tried.size < 10_000) {
    const original = NAMES[int(NAMES.length)]!;
    const variant = vary(original, int);
    if (variant === original || tried.has(variant)) continue;
    tried.add(variant);
    const byName = problemOf(() => registry.register(tool(variant)));
    const byAlias = problemOf(() => registry.register(tool("zzz.unrelated", [variant])));
    if (byName === "accepted" || byAlias === "accepted") accepted.push(`${original} as ${variant}`);
  }
  expect(accepted).toEqual([]);
  expect(registry.names()).toEqual(NAMES.toSorted());
});

function vary(name: string, int: (below: number) => number): string {
  let characters = [...name];
  for (let changes = 1 + int(3); changes > 0; changes -= 1) {
    const at = int(characters.length);
    const swaps = SWAPS[characters[at]!];
    if (int(4) === 0 || swaps === undefined)
      characters.splice(at, 0, INVISIBLE[int(INVISIBLE.length)]!);
    else characters[at] = swaps[int(swaps.length)]!;
    characters = [...characters.join("")];
  }
  return characters.join("");
}

test("accepts names that people can distinguish [T11]", () => {
  const registry = createRegistry();
  for (const name of [
    ...NAMES,
    "tool2",
    "tool3",
    "ci.run",
    "d.run",
    "mail.sent",
    "billing.refunds",
    "a",
    "b",
  ]) {
    registry.register(tool(name));
  }
  expect(registry.count()).toBe(NAMES.length + 8);
});

test("accepts aliases of a tool that look like its own name [T11]", () => {
  const registry = createRegistry();
  registry.register(tool("mail.send_all", ["mail.send-all", "mail.sendAll"]));
  expect(registry.get("mail.sendAll")?.name).toBe("mail.send_all");
});

test("the error names the similar tool and what to do [T11]", () => {
  const registry = createRegistry();
  registry.register(tool("send_mail"));
  expect(problemOf(() => registry.register(tool("sendMai1")))).toContain(
    '"sendMai1" looks like "send_mail", which is registered. Choose a name that people can distinguish from it.',
  );
});

test("rejects a prefix that looks like another server's, even without a tool of that name [T11]", () => {
  const registry = createRegistry();
  registry.register(tool("github.create_issue"), { server: "github" });
  const asServer = problemOf(() => registry.register(tool("glthub.merge"), { server: "glthub" }));
  expect(asServer).toContain('"glthub." looks like "github."');
  expect(problemOf(() => registry.register(tool("GitHub.merge")))).toContain("looks like");
});

test("a server registers tools under its own prefix only, and no other source uses that prefix [T11]", () => {
  const registry = createRegistry();
  registry.register(tool("billing.refund"));
  registry.register(tool("github.merge"), { server: "github" });
  const external = (name: string, server: string, aliases: readonly string[] = []) =>
    problemOf(() => registry.register(tool(name, aliases), { server }));
  expect(external("refund", "github")).toContain('are named "github.…"');
  expect(external("billing.pay", "github")).toContain('are named "github.…"');
  expect(external("github.pay", "github", ["pay"])).toContain("has no aliases");
  expect(external("billing.pay", "billing")).toContain("belong to tools of our own");
  expect(external("a.b.pay", "a.b")).toContain("A server's name");
  expect(problemOf(() => registry.register(tool("github.pay")))).toContain(
    'belong to the server "github"',
  );
  expect(external("github.pay", "github")).toBe("accepted");
});

test("names that differ only in separators are equal, so adapters may replace separators [T11]", () => {
  const registry = createRegistry();
  registry.register(tool("github.create_issue"));
  expect(problemOf(() => registry.register(tool("github_create.issue")))).toContain("looks like");
  expect(nameSkeleton("A.b-C_d")).toBe("abcd");
});
