// The repository's rules about itself. Each test compares what is there and lists what disagrees;
// the tables come first because a change of the rules is a change of these.

import { expect, test } from "vitest";
import {
  exists,
  filesIn,
  importsOf,
  isTest,
  linesWith,
  loadsOf,
  read,
  tableRows,
} from "./support/source-files.ts";

/** Folders of src in order: each imports only from groups above its own, and not from its neighbours. */
const LAYERS: readonly (readonly string[])[] = [
  ["util"],
  ["model"],
  ["tools", "store"], // store: the contract, the files directly in src/store
  ["store/*", "policy", "audit"],
  ["tasks", "delegation"],
  ["gate"],
  ["flow"],
  ["notify"],
  ["http"],
  ["client"],
  ["mcp", "adapters", "coding-agents"],
  ["crashkit"],
  ["cli"],
  ["(entry)"], // src/index.ts
];

/** Arrows between neighbours that are allowed all the same, as `from > to`. */
const EXTRA_ARROWS: readonly string[] = ["store/* > audit"];

/** Entry files of src that package.json does not export on purpose, each with its reason. */
const NOT_EXPORTED: Readonly<Record<string, string>> = {};

/** The only files of src that ask for the time, wait, or draw random numbers. */
const SOURCES_OF_CHANCE: readonly string[] = [
  "src/util/clock.ts",
  "src/util/ids.ts",
  "src/util/random.ts",
  "src/util/timers.ts",
];
const CHANCE =
  /\bDate\.now\b|\bnew Date(?:\(\s*\)|(?!\s*\()\b)|\bMath\.random\b|\bset(?:Timeout|Interval|Immediate)\b|\brandom(?:UUID|Bytes)\b|\bAbortSignal\.timeout\b/;

const LINES_MAX = 600;

/** Names that two files of src export with different meanings, each with the reason why it may. */
const TWO_MEANINGS: Readonly<Record<string, string>> = {
  MIGRATIONS: "the same part of two engines",
  TASKS: "the record of a task, and the methods of MCP about its own tasks",
  Writer: "the same part of two engines",
  asStoreError: "the same part of two engines",
  gateTools: "the same function of several adapters",
  gated: "the same function of several adapters",
  resume: "the same function of several adapters",
};

/** Files of src with one importer, a neighbour in their own folder, that stay apart, each with the reason. */
const STORIES_OF_THEIR_OWN: Readonly<Record<string, string>> = {
  "src/http/mcp.ts": "the door to the MCP gateway",
  "src/mcp/http-streams.ts": "answers of one carrier; together longer than a chapter",
  "src/mcp/http-wire.ts": "one carrier of MCP messages",
  "src/mcp/stdio-wire.ts": "one carrier of MCP messages",
  "src/cli/main.ts": "bin.ts only starts it; tests start it too",
  "src/crashkit/invariants/effects.ts": "together longer than a chapter",
  "src/flow/nodes.ts": "together longer than a chapter",
  "src/gate/decide.ts": "a step of the life of a call",
  "src/gate/host-call.ts": "a step of the life of a call",
  "src/coding-agents/tools.ts": "what a host's tools are to the gate",
  "src/coding-agents/snapshots.ts": "files before an edit; a story of its own",
  "src/gate/preview.ts": "a question beside the life of a call",
  "src/gate/wire-gate.ts": "loaded by the first use of a gate, not with the package",
  "src/policy/dangers.ts": "tables of dangers; together longer than a chapter",
  "src/store/calls.ts": "one noun of the store",
  "src/store/breakers.ts": "one noun of the store",
  "src/store/flow-states.ts": "one noun of the store",
  "src/store/http-keys.ts": "one noun of the store",
  "src/store/tokens.ts": "one noun of the store",
  "src/store/postgres/session.ts": "one connection, and what became of a lost COMMIT",
  "src/store/sqlite/write-thread-body.ts": "started as a thread of its own",
  "src/store/task-claims.ts": "what a database does with tasks in one step",
  "src/tools/builtin/find-files.ts": "tools that search; together longer than a chapter",
  "src/tools/builtin/command-files.ts": "the undo of commands; together longer than a chapter",
  "src/tools/json-schema/keywords.ts": "together longer than a chapter",
  "src/crashkit/run-crash-kit.ts": "the runner; its entry only holds names",
  "src/delegation/verify.ts": "checks of evidence; together longer than a chapter",
  "src/gate/validators/adapters.ts": "one kind of validator",
  "src/gate/validators/composite.ts": "one kind of validator",
  "src/gate/validators/rules.ts": "one kind of validator",
  "src/gate/validators/validated-tool.ts": "one kind of validator",
  "src/http/create-server.ts": "the server; its entry only holds names",
  "src/mcp/http-server.ts": "one door of the gateway; its entry only holds names",
  "src/mcp/inbox-server.ts": "one door of the gateway; its entry only holds names",
  "src/mcp/stdio-server.ts": "one door of the gateway; its entry only holds names",
  "src/notify/email.ts": "one channel",
  "src/notify/notifier.ts": "the outbox; its entry only holds names",
  "src/notify/slack.ts": "one channel",
  "src/notify/webhook.ts": "one channel",
  "src/store/conformance/confirmation-cases.ts":
    "the cases of one part of the contract; together longer than a chapter",
  "src/store/conformance/decision-query-cases.ts":
    "the cases of one part of the contract; together longer than a chapter",
  "src/store/conformance/decision-race-cases.ts":
    "the cases of one part of the contract; together longer than a chapter",
  "src/store/conformance/decision-review-cases.ts":
    "the cases of one part of the contract; together longer than a chapter",
  "src/store/conformance/decision-stage-cases.ts":
    "the cases of one part of the contract; together longer than a chapter",
  "src/store/conformance/delegation-cases.ts":
    "the cases of one part of the contract; together longer than a chapter",
  "src/store/conformance/engine-condition-cases.ts":
    "the cases of one part of the contract; together longer than a chapter",
  "src/store/conformance/engine-find-cases.ts":
    "the cases of one part of the contract; together longer than a chapter",
  "src/store/conformance/engine-group-cases.ts":
    "the cases of one part of the contract; together longer than a chapter",
  "src/store/conformance/engine-take-cases.ts":
    "the cases of one part of the contract; together longer than a chapter",
  "src/store/conformance/engine-trail-cases.ts":
    "the cases of one part of the contract; together longer than a chapter",
  "src/store/conformance/engine-write-cases.ts":
    "the cases of one part of the contract; together longer than a chapter",
  "src/store/conformance/grant-cases.ts":
    "the cases of one part of the contract; together longer than a chapter",
  "src/store/conformance/interaction-cases.ts":
    "the cases of one part of the contract; together longer than a chapter",
  "src/store/conformance/operation-cases.ts":
    "the cases of one part of the contract; together longer than a chapter",
  "src/store/conformance/trail-cases.ts":
    "the cases of one part of the contract; together longer than a chapter",
  "src/store/postgres/hosts.ts":
    "which server of several is written to; together longer than a chapter",
  "src/store/postgres/reader.ts": "all reads of the engine; together longer than a chapter",
  "src/store/postgres/schema.ts":
    "the tables and their migrations; scripts and tests read them too",
  "src/store/sqlite/call-index.ts": "a database of its own, beside the engine's",
  "src/store/sqlite/write-thread.ts": "a fast path, kept apart from the plain one",
  "src/tasks/json-tasks.ts": "one kind of task file; together longer than a chapter",
};

/** Uses of a column's name outside of src/store that mean something else, each with what it means. */
const NOT_A_COLUMN: Readonly<Record<string, string>> = {
  "src/coding-agents/canary.ts: call_id": "a field of what a host sends to its hooks",
  "src/coding-agents/hosts.ts: session_id": "a field of what a host sends to its hooks",
  "src/crashkit/compare-records.ts: source_tool": "data of an audit entry",
  "src/crashkit/compare-records.ts: undo_of": "data of an audit entry",
  "src/crashkit/invariants/table.ts: undo_of": "data of an audit entry",
  "src/flow/create-flow.ts: interaction_id": "the stored form of a conversation",
  "src/flow/create-flow.ts: session_id": "the stored form of a conversation",
  "src/flow/create-flow.ts: trace_id": "the stored form of a conversation",
  "src/flow/nodes.ts: interaction_id": "the stored form of a conversation",
  "src/flow/nodes.ts: trace_id": "the stored form of a conversation",
  "src/flow/runtime-state.ts: interaction_id": "the stored form of a conversation",
  "src/flow/runtime-state.ts: trace_id": "the stored form of a conversation",
  "src/gate/undo.ts: undo_of": "data of an audit entry",
  "src/http/routes/conversations.ts: interaction_id": "the stored form of a conversation",
  "src/http/routes/conversations.ts: session_id": "the stored form of a conversation",
  "src/tasks/conformance/life-cases.ts: claimed_at": "the JSON form of a task",
  "src/tasks/conformance/life-cases.ts: completed_at": "the JSON form of a task",
  "src/tasks/conformance/life-cases.ts: created_at": "the JSON form of a task",
  "src/tasks/markdown-format.ts: created_at": "the JSON form of a task",
};

/** What folders after the store may use of its engine: whole parts of a change, never its steps or conditions. */
const OF_THE_ENGINE = /\b(?:Conditions|Step|Values|Row|(?:insert|update|delete|require)Step)\b/;

/** Row ids of docs/spec. */
const ROW_ID = /\b(?:S[0-4]|I)-\d{2,3}\b/;

/** More words than this are not learned. */
const GLOSSARY_MAX = 45;

const manifest: {
  exports: Record<string, Record<string, string>>;
  dependencies?: Record<string, string>;
  peerDependencies: Record<string, string>;
} = JSON.parse(read("package.json"));
const source = filesIn("src").filter((file) => file.endsWith(".ts") && !isTest(file));

test("each folder of src imports only from folders before it", () => {
  const problems = source.flatMap((file) => {
    const from = roomOf(file);
    if (rankOf(from) < 0) return [`${file}: the folder ${from} is missing in LAYERS`];
    return importsOf(file)
      .filter((target) => target.startsWith("src/"))
      .filter((target) => !mayImport(from, roomOf(target)))
      .map((target) => `${file} imports ${target}: ${roomOf(target)} is not before ${from}`);
  });
  expect(problems).toEqual([]);
});

test("no file of src loads itself through others", () => {
  // `import type` is erased. A cycle of the rest works only until a constant is used before it is defined.
  const loads = new Map(source.map((file) => [file, loadsOf(file)]));
  expect(loads.get("src/index.ts")?.length, "void: no imports found").toBeGreaterThan(5);
  const settled = new Set<string>();
  const problems: string[] = [];
  const follow = (file: string, way: readonly string[]): void => {
    if (way.includes(file)) problems.push([...way.slice(way.indexOf(file)), file].join(" > "));
    if (way.includes(file) || settled.has(file)) return;
    for (const next of loads.get(file) ?? []) follow(next, [...way, file]);
    settled.add(file);
  };
  for (const file of source) follow(file, []);
  expect(problems).toEqual([]);
});

test("ARCHITECTURE.md lists the imports between the folders of src as they are", () => {
  const real = new Map<string, Set<string>>();
  for (const file of source) {
    const from = generic(roomOf(file));
    for (const target of importsOf(file).filter((name) => name.startsWith("src/"))) {
      const to = generic(roomOf(target));
      if (to !== from) real.set(from, (real.get(from) ?? new Set()).add(to));
    }
  }
  const [, block = ""] = /^```imports\n([\s\S]*?)^```/m.exec(read("ARCHITECTURE.md")) ?? [];
  const arrows = (from: string, targets: Iterable<string>) =>
    [...targets].map((to) => `${from} -> ${to}`);
  const drawn = block
    .split("\n")
    .map((line) => line.split(/\s+/))
    .flatMap(([from = "", ...targets]) => arrows(from, targets));
  const found = [...real].flatMap(([from, targets]) => arrows(from, targets));
  expect(drawn.toSorted(), "ARCHITECTURE.md (+) against the code (-)").toEqual(found.toSorted());
});

test("ARCHITECTURE.md names files and folders that exist, and every folder of src", () => {
  const page = read("ARCHITECTURE.md");
  const steps = [...page.matchAll(/^(?:.*[>(─] ?)?([a-z-]+\.ts)\b(?=[: )])/gm)].map(
    ([, name]) => `gate/${name}`,
  );
  const files = [...page.matchAll(/`((?:[a-z-]+\/)+[a-z-]+\.ts)`/g)].map(([, name]) => name ?? "");
  expect(steps.length, "void: no steps found").toBeGreaterThan(8);
  const missing = [...steps, ...files].filter((name) => !exists(`src/${name}`) && !exists(name));
  expect(missing).toEqual([]);
  const folders = new Set(
    source.map(roomOf).filter((room) => !room.includes("/") && room !== "(entry)"),
  );
  expect([...folders].filter((folder) => !page.includes(`| \`src/${folder}\` |`))).toEqual([]);
});

test(`the glossary has at most ${GLOSSARY_MAX} words, each once`, () => {
  const words = tableRows("docs/reference/glossary.md", "word").map(({ word }) => word);
  expect(words.length, "void: no words found").toBeGreaterThan(20);
  expect(words.length).toBeLessThanOrEqual(GLOSSARY_MAX);
  expect(words.filter((word, index) => words.indexOf(word) !== index)).toEqual([]);
});

test("src imports only itself, Node and what users of the package have installed", () => {
  const installed = { ...manifest.dependencies, ...manifest.peerDependencies };
  const allowed = (target: string) =>
    target.startsWith("src/") ||
    target.startsWith("node:") ||
    Object.keys(installed).some((name) => target === name || target.startsWith(`${name}/`));
  const problems = source.flatMap((file) =>
    importsOf(file)
      .filter((target) => !allowed(target))
      .map((target) => `${file} imports ${target}`),
  );
  expect(problems).toEqual([]);
});

test("package.json exports every entry file of src, and nothing that is not there", () => {
  const problems: string[] = [];
  const exported = new Set<string>();
  for (const [name, conditions] of Object.entries(manifest.exports)) {
    const file = conditions["sallyport-source"]?.slice("./".length) ?? "";
    exported.add(file);
    if (!exists(file)) problems.push(`"${name}" is exported, but there is no ${file}`);
    const built = `./${file.replace(/^src\//, "dist/").replace(/\.ts$/, "")}`;
    expect(Object.entries(conditions), `conditions of "${name}", in order`).toEqual([
      ["sallyport-source", `./${file}`],
      ["types", `${built}.d.ts`],
      ["default", `${built}.js`],
    ]);
  }
  for (const file of source.filter((file) => file.endsWith("/index.ts"))) {
    if (exported.has(file) || NOT_EXPORTED[file] !== undefined) continue;
    problems.push(`${file} is neither exported nor listed in NOT_EXPORTED`);
  }
  expect(problems).toEqual([]);
});

test("no test runs alone, and every skip says why", () => {
  const only = /\b(?:test|it|describe|suite|bench)(?:\.\w+)*\.only\b|\bonly: true\b/;
  const skip = /(?:[\w)]|^\s*)\.(?:skip|skipIf|runIf|todo)\b|\bskip\(|\b(?:skip|todo): true\b/;
  const ownReason = /\bskip\((?:[^"'`]*,\s*)?["'`]/; // context.skip("why") and context.skip(when, "why")
  const tests = [...filesIn("src").filter(isTest), ...filesIn("tests")];
  const problems = tests.flatMap((file) => {
    const raw = read(file).split("\n");
    const hasReason = ({ at, line }: { at: string; line: string }) => {
      const number = Number(at.split(":")[1]);
      const near = raw.slice(Math.max(0, number - 2), number).join("\n");
      const ofTest = /\b(?:test|it|describe|suite)(?:\.\w+)*\.skip/.test(line); // there it is the name
      return /\/\/ skip: \S/.test(near) || (!ofTest && ownReason.test(line));
    };
    return [
      ...linesWith(file, only).map(({ at }) => `${at}: runs alone`),
      ...linesWith(file, skip)
        .filter((found) => !hasReason(found))
        .map(({ at }) => `${at}: needs a comment "// skip: why" on its line or the one above`),
    ];
  });
  expect(problems).toEqual([]);
});

test("docs/reference/errors.md lists the codes of src/model/errors.ts", async () => {
  const page = "docs/reference/errors.md";
  expect(exists(page), `${page} exists`).toBe(true);
  const { ERRORS } = await import("../src/model/errors.ts");
  const byCode = (a: { code: string }, b: { code: string }) => (a.code < b.code ? -1 : 1);
  const defined = Object.entries(ERRORS)
    .map(([code, { status, summary }]) => ({ code, status: String(status), summary }))
    .toSorted(byCode);
  const documented = tableRows(page, "code")
    .map((row) => ({
      code: (row["code"] ?? "").replaceAll("`", ""),
      status: row["status"],
      summary: row["summary"],
    }))
    .toSorted(byCode);
  expect(documented, "documented (+) against defined (-)").toEqual(defined);
});

test("decision records are named by date and listed in their README", () => {
  const folder = "docs/decisions";
  const records = filesIn(folder)
    .map((file) => file.slice(folder.length + 1))
    .filter((name) => name !== "README.md");
  if (records.length === 0) return;
  const name = /\d{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12]\d|3[01])-[a-z0-9]+(?:-[a-z0-9]+)*\.md/;
  expect(
    records.filter((record) => record.match(name)?.[0] !== record),
    "not YYYY-MM-DD-slug.md",
  ).toEqual([]);
  const listed = read(`${folder}/README.md`).match(new RegExp(name, "g")) ?? [];
  expect([...new Set(listed)].toSorted(), "listed (+) against present (-)").toEqual(records);
});

test(`no file of src is longer than ${LINES_MAX} lines`, () => {
  // A schema dump is made, not read page by page; it is as long as the schema.
  const problems = filesIn("src")
    .filter((file) => !file.endsWith("/schema.sql"))
    .map((file) => ({ file, lines: read(file).trimEnd().split("\n").length }))
    .filter(({ lines }) => lines > LINES_MAX)
    .map(({ file, lines }) => `${file} has ${lines}`);
  expect(problems).toEqual([]);
});

test("time, waiting and chance come from src/util alone", () => {
  const problems = source
    .filter((file) => !SOURCES_OF_CHANCE.includes(file))
    .flatMap((file) => linesWith(file, CHANCE).map(({ at, line }) => `${at}: ${line}`));
  expect(problems).toEqual([]);
});

test("nothing outside of src/store names a table or a column, or makes a step of a change", () => {
  const schema = read("src/store/sqlite/schema.sql");
  const tables = [...schema.matchAll(/^CREATE TABLE (\w+)/gm)].map(([, name = ""]) => name);
  // Columns of one word are ordinary words too; of several words they are in every table.
  const columns = [...schema.matchAll(/^ {2}([a-z]+(?:_[a-z]+)+) /gm)].map(([, name = ""]) => name);
  expect(tables.length, "void: no tables found").toBeGreaterThan(15);
  expect(new Set(columns).size, "void: no columns found").toBeGreaterThan(40);
  const sql = new RegExp(`\\b(?:FROM|INTO|UPDATE|JOIN|TABLE)\\s+"?(?:${tables.join("|")})\\b`);
  const named = new RegExp(`\\b(${[...new Set(columns)].join("|")})\\b`, "g");
  const outside = source.filter((file) => !/^src\/(?:store|model)\//.test(file));
  const found = new Set<string>();
  const problems: string[] = [];
  for (const file of outside) {
    problems.push(...linesWith(file, sql).map(({ at, line }) => `${at} names a table: ${line}`));
    for (const { line } of linesWith(file, new RegExp(named, ""))) {
      for (const [, column] of line.matchAll(named)) found.add(`${file}: ${column}`);
    }
    const imported = read(file).match(/^import [^;]*?store\/engine\.ts";$/gm) ?? [];
    if (imported.some((one) => OF_THE_ENGINE.test(one))) problems.push(`${file} makes steps`);
  }
  problems.push(...[...found].filter((name) => NOT_A_COLUMN[name] === undefined));
  expect(problems).toEqual([]);
  const gone = Object.keys(NOT_A_COLUMN).filter((name) => !found.has(name));
  expect(gone, "remove them from NOT_A_COLUMN").toEqual([]);
});

test("every exported name has one meaning in the whole of src", () => {
  const declared =
    /^export (?:abstract |async )*(?:function\*?|const|let|class|interface|type) (\w+)/gm;
  const homes = new Map<string, Set<string>>();
  for (const file of source) {
    for (const [, name = ""] of read(file).matchAll(declared)) {
      homes.set(name, (homes.get(name) ?? new Set()).add(file));
    }
  }
  expect(homes.size, "void: no exports found").toBeGreaterThan(500);
  const twice = [...homes].filter(([, files]) => files.size > 1);
  const problems = twice
    .filter(([name]) => TWO_MEANINGS[name] === undefined)
    .map(([name, files]) => `${name}: ${[...files].join(", ")}`);
  expect(problems).toEqual([]);
  const gone = Object.keys(TWO_MEANINGS).filter((name) => !twice.some(([known]) => known === name));
  expect(gone, "remove them from TWO_MEANINGS").toEqual([]);
});

test("no file is read only by one neighbour in its own folder", () => {
  const entries = new Set(
    Object.values(manifest.exports).map((one) => one["sallyport-source"]?.slice("./".length)),
  );
  const importers = new Map<string, string[]>();
  for (const file of source) {
    for (const target of new Set(importsOf(file))) {
      importers.set(target, [...(importers.get(target) ?? []), file]);
    }
  }
  const folderOf = (file: string) => file.slice(0, file.lastIndexOf("/"));
  const lone = source.flatMap((file) => {
    const [only = "", ...more] = importers.get(file) ?? [];
    if (more.length > 0 || folderOf(only) !== folderOf(file)) return [];
    return entries.has(file) ? [] : [{ file, only }];
  });
  const problems = lone
    .filter(({ file }) => STORIES_OF_THEIR_OWN[file] === undefined)
    .map(({ file, only }) => `${file} is read only by ${only}`);
  expect(problems).toEqual([]);
  const listed = Object.keys(STORIES_OF_THEIR_OWN);
  const gone = listed.filter((name) => !lone.some(({ file }) => file === name));
  expect(gone, "remove them from STORIES_OF_THEIR_OWN").toEqual([]);
});

test("test titles have their row ids in brackets at the end", () => {
  const title = /(?:\b(?:test|it|describe)(?:\.\w+)*\(|\)\()\s*(["'`])((?:\\.|(?!\1).)*)\1/g;
  const caseName = /\bname:\s*(["'`])((?:\\.|(?!\1).)*)\1/g;
  const files = [...filesIn("src"), ...filesIn("tests"), ...filesIn("console")];
  const problems = files
    .filter((file) => isTest(file) || file.includes("/conformance/"))
    .flatMap((file) =>
      [...read(file).matchAll(isTest(file) ? title : caseName)]
        .map(([, , text = ""]) => text)
        .filter((text) => ROW_ID.test(text.replace(/ \[[^[]*(?:\[\w+\][^[]*)*\]$/, "")))
        .map((text) => `${file}: ${text}`),
    );
  expect(problems).toEqual([]);
});

/** `src/store/sqlite/index.ts` is in the room `store/sqlite`, `src/gate/policies/x.ts` in `gate`. */
function roomOf(file: string): string {
  const [, first = "", second = "", third] = file.split("/");
  if (second === "") return "(entry)";
  return first === "store" && third !== undefined ? `store/${second}` : first;
}

function rankOf(room: string): number {
  return LAYERS.findIndex((group) => group.includes(generic(room)));
}

function generic(room: string): string {
  return room.startsWith("store/") ? "store/*" : room;
}

function mayImport(from: string, to: string): boolean {
  if (from === to) return true;
  if (EXTRA_ARROWS.includes(`${generic(from)} > ${generic(to)}`)) return true;
  return rankOf(to) >= 0 && rankOf(to) < rankOf(from);
}
