import { expect, test } from "vitest";
import manifest from "../../package.json" with { type: "json" };
import { read, tableRows } from "../support/source-files.ts";

/** A longer list of names is too long for an editor's completion list. */
const MOST_VALUES = 30;

test("the root entry has at most thirty values, and none of them is also in another entry", async () => {
  const values = Object.keys(await import("sallyport"));
  expect(values).toContain("createGate");
  expect(values.length, values.join(" ")).toBeLessThanOrEqual(MOST_VALUES);
  const others = await Promise.all([
    import("sallyport/audit"),
    import("sallyport/delegation"),
    import("sallyport/tasks"),
    import("sallyport/store"),
    import("sallyport/tools"),
  ]);
  const elsewhere = new Set(others.flatMap((entry) => Object.keys(entry)));
  expect(values.filter((name) => elsewhere.has(name))).toEqual([]);
});

test("docs/reference/api.md lists the values of the root entry with an example, and every other entry", async () => {
  const page = "docs/reference/api.md";
  const rows = tableRows(page, "name");
  const listed = rows.map(({ name }) => (name ?? "").replaceAll("`", ""));
  const values = Object.keys(await import("sallyport"));
  expect(listed.toSorted(), "listed (+) against exported (-)").toEqual(values.toSorted());
  expect(
    rows.filter(({ name = "", example = "" }) => !example.includes(name.slice(1, -1))),
  ).toEqual([]);
  const entries = Object.keys(manifest.exports).filter((entry) => entry !== ".");
  const named = read(page).match(/`sallyport\/[\w/-]+`/g) ?? [];
  expect([...new Set(named)].toSorted()).toEqual(
    entries.map((entry) => `\`sallyport${entry.slice(1)}\``).toSorted(),
  );
});

/** The range of each framework that its adapter was made for; older ones pause and resume in other ways. */
const FRAMEWORKS: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  "./ai": { ai: "^7" },
  "./openai-agents": { "@openai/agents": "^0.20" },
  "./langchain": {
    "@langchain/core": "^1.2.13",
    "@langchain/langgraph": "^1.4",
    langchain: "^1.5",
  },
  "./mastra": { "@mastra/core": ">=1.68 <2" },
  "./claude-agent": { "@anthropic-ai/claude-agent-sdk": "^0.3" },
};

test.each(Object.entries(FRAMEWORKS))(
  "what sallyport%s adapts is an optional peer",
  (entry, ranges) => {
    expect(Object.keys(manifest.exports)).toContain(entry);
    const peers: Record<string, string> = manifest.peerDependencies;
    const meta: Record<string, { optional: boolean }> = manifest.peerDependenciesMeta;
    const { packages } = JSON.parse(read("package-lock.json"));
    for (const [name, range] of Object.entries(ranges)) {
      expect([peers[name], meta[name]?.optional]).toEqual([range, true]);
      expect(packages[""].peerDependencies[name]).toBe(range);
    }
  },
);

test("every adapter of src is in the list of frameworks", () => {
  const adapters = Object.entries(manifest.exports).filter(([, { default: file }]) =>
    file.includes("/adapters/"),
  );
  expect(adapters.map(([entry]) => entry).toSorted()).toEqual(Object.keys(FRAMEWORKS).toSorted());
});

/** The doc comment directly above an exported value. */
function commentOf(file: string, name: string): string {
  const source = read(file);
  const declared = new RegExp(`^export (?:async )?(?:function|const|class) ${name}\\b`, "m");
  const above = source.slice(0, declared.exec(source)?.index ?? 0);
  const [, comment = ""] =
    /(\/\*\*(?:(?!\*\/)[\s\S])*\*\/)\n(?:\/\/ biome-ignore .*\n)?$/.exec(above) ?? [];
  return comment;
}

test("every value of the root entry has a doc comment with the example of docs/reference/api.md", () => {
  const exported = [...read("src/index.ts").matchAll(/^export \{([^}]*)\} from "\.\/(.*)";$/gm)];
  const files = new Map(
    exported.flatMap(([, names = "", file = ""]) =>
      names.split(",").map((name) => [name.trim(), `src/${file}`] as const),
    ),
  );
  const rows = tableRows("docs/reference/api.md", "name");
  expect(rows.length, "void: no rows found").toBeGreaterThan(20);
  const without = rows
    .map(({ name = "", example = "" }) => [name.slice(1, -1), example.slice(1, -1)] as const)
    .filter(([name, example]) => !commentOf(files.get(name) ?? "", name).includes(example));
  expect(without).toEqual([]);
});

test("docs/guide/policy.md lists the fields of a rule and of a test of the input", () => {
  const documented = tableRows("docs/guide/policy.md", "field").map(({ field = "", required }) => ({
    field: field.replaceAll("`", ""),
    required: required === "yes",
  }));
  const source = read("src/policy/policy.ts");
  const [, keys = ""] = /const RULE_KEYS = \[([^\]]*)\]/.exec(source) ?? [];
  const known = [...keys.matchAll(/"(\w+)"/g)].map(([, key = ""]) => ({
    field: key,
    required: new RegExp(`interface Rule \\{[^}]*readonly ${key}:`).test(source),
  }));
  const byField = (a: { field: string }, b: { field: string }) => (a.field < b.field ? -1 : 1);
  expect(known.length, "void: no fields found").toBeGreaterThan(10);
  expect(documented.toSorted(byField)).toEqual(known.toSorted(byField));
  const [, conditions = ""] =
    /const TEST_KEYS = \[([^\]]*)\]/.exec(read("src/policy/patterns.ts")) ?? [];
  const page = read("docs/guide/policy.md");
  const missing = [...conditions.matchAll(/"(\w+)"/g)].filter(
    ([, key]) => !page.includes(`${key}`),
  );
  expect(missing).toEqual([]);
});
