// Nothing painted on: every option, hook point, flag, rule field and exported function is read by the product, and a test that
// goes through a public door shows what it changes. What is accepted and ignored fails here.

import { createServer as createNodeServer } from "node:http";
import type { AddressInfo } from "node:net";
import { expect, onTestFinished, test, vi } from "vitest";
import { createProgram } from "../../src/cli/main.ts";
import { requestOf } from "../../src/client/create-client.ts";
import { PARTS, rowsOf } from "../behaviours/rows.ts";
import { exportsOf, surfacesOf, testsIn } from "../behaviours/surfaces.ts";
import { exists, filesIn, isTest, linesWith, read, stringsIn } from "../support/source-files.ts";
import { configNames, flagNames, generatedVerbs, optionNames, sampleOf } from "./option-names.ts";
import { GIVEN_PARTS, NOT_SHOWN, SHOWN } from "./shown.ts";

const source = filesIn("src").filter((file) => file.endsWith(".ts") && !isTest(file));
const isTestFile = (file: string) => /\.(?:ts|tsx|mjs|py)$/.test(file);
const testFiles = [...filesIn("tests"), ...filesIn("src").filter(isTest)].filter(
  (file) => isTestFile(file) && !/^tests\/(?:wiring\/wiring|behaviours\/)/.test(file),
);
/** Tests and examples that use the package as its users do. */
const throughDoors = [
  ...testFiles.filter((file) => surfacesOf(file).length > 0),
  ...filesIn("examples").filter(isTestFile),
];
const texts = new Map([...source, ...testFiles, ...throughDoors].map((file) => [file, read(file)]));

/** Seen only after hours, or with megabytes that nobody reads: the tests of their own parts show them. */
const NOT_SEEN: Readonly<Record<string, string>> = {
  keyKeepMs: "how long the answer to a key is kept: hours",
  listenerBytes: "when a listener that does not read is disconnected: a megabyte behind",
};

/** For authors of tools and stores, who take the place of parts of the product. */
const FOR_AUTHORS: readonly string[] = ["Notices", "qualifierOf", "readUndo"];

function mentions(files: readonly string[], name: string): boolean {
  const word = new RegExp(`\\b${name}\\b`);
  return files.some((file) => word.test(texts.get(file) ?? ""));
}

/** The names of the fields of an interface. */
function fieldsOf(file: string, type: string): readonly string[] {
  const [, body = ""] =
    new RegExp(`interface ${type}\\b[^{]*\\{\\n([\\s\\S]*?)\\n\\}`).exec(read(file)) ?? [];
  return [...body.matchAll(/^ {2}(?:readonly )?(\w+)\??[:(]/gm)].map(([, name = ""]) => name);
}

/** Those that no line of these files reads as a property, destructures or passes on. */
function unread(names: readonly string[], files: readonly string[]): readonly string[] {
  return names.filter((name) => {
    const use = new RegExp(`\\.${name}\\b|[{,(]\\s*${name}\\s*[,:=})]|^\\s*${name},$`);
    return !files.some((file) => linesWith(file, use).length > 0);
  });
}

function untested(names: readonly string[]): readonly string[] {
  return names.filter((name) => NOT_SEEN[name] === undefined && !mentions(throughDoors, name));
}

test("every option of the gate is read by the product and changes something in a test through a door", () => {
  const options = fieldsOf("src/gate/options.ts", "GateOptions");
  expect(options.length, "void: no options found").toBeGreaterThan(35);
  const gate = source.filter((file) => /^src\/gate\//.test(file) && file !== "src/gate/options.ts");
  expect(unread(options, gate)).toEqual([]);
  expect(untested(options)).toEqual([]);
});

test("every option of the server, the client and the flow is read and tested", () => {
  const cases = [
    ["src/http/create-server.ts", "ServerOptions", /^src\/http\//],
    ["src/http/route.ts", "HttpLimits", /^src\/http\//],
    ["src/client/create-client.ts", "ClientOptions", /^src\/client\//],
    ["src/flow/create-flow.ts", "FlowOptions", /^src\/flow\//],
  ] as const;
  for (const [file, type, folder] of cases) {
    const options = fieldsOf(file, type);
    expect(options.length, `void: ${type}`).toBeGreaterThan(5);
    const inside = source.filter((one) => folder.test(one));
    expect(unread(options, inside), type).toEqual([]);
    expect(untested(options), type).toEqual([]);
  }
});

test("every nested option, every option of a built-in tool or of serve, and every flag has a test that shows what it changes", () => {
  const options = optionNames();
  const served = configNames().filter((name) => {
    const own = [`createGate.${name}`, `createServer.${name.replace(/^http\./, "")}`];
    return !own.some((one) => options.includes(one));
  });
  const all = [...options, ...served.map((name) => `serve.${name}`), ...flagNames()];
  expect(options.length, "void: too few options").toBeGreaterThan(130);
  expect(served.length, "void: too few fields").toBeGreaterThan(15);
  expect(flagNames().length, "void: too few flags").toBeGreaterThan(60);
  const wanted = all.filter((name) => !GIVEN_PARTS.includes(name.split(".").at(-1) ?? ""));
  const shown = Object.values(SHOWN).flatMap((titles) => Object.values(titles).flat());
  expect(shown.toSorted(), "one test each").toEqual([...new Set(shown)].toSorted());
  const missing = wanted.filter((name) => !shown.includes(name) && !NOT_SHOWN.includes(name));
  expect(missing, "name the test that shows it in tests/wiring/shown.ts").toEqual([]);
  const gone = [...shown, ...NOT_SHOWN].filter((name) => !wanted.includes(name));
  expect(gone, "does not exist any more").toEqual([]);
  expect(NOT_SHOWN.filter((name) => shown.includes(name))).toEqual([]);
  expect(NOT_SHOWN.length).toBeLessThanOrEqual(MOST_NOT_SHOWN);
});

/** Lower it with each that gets its test. */
const MOST_NOT_SHOWN = 36;

test("the tests that show options and flags exist and name them", () => {
  const problems = Object.entries(SHOWN).flatMap(([file, titles]) => {
    const text = exists(file) ? read(file) : "";
    return Object.entries(titles).flatMap(([title, names]) => {
      const isThere = testsIn(file).some(({ code }) => code.includes(title));
      const unnamed = names.filter((name) => {
        const word = name.split(/[. ]/).at(-1) ?? "";
        return !new RegExp(`(?<![\\w-])${word}(?![\\w-])`).test(text);
      });
      return [
        ...(isThere ? [] : [`${file}: no test "${title}"`]),
        ...unnamed.map((name) => `${file}: ${name}`),
      ];
    });
  });
  expect(problems).toEqual([]);
});

test("every flag of a generated command arrives in its route as the field that it names", async () => {
  const seen: { method: string; address: string; body: string }[] = [];
  const stub = createNodeServer((request, response) => {
    const pieces: Buffer[] = [];
    request.on("data", (piece: Buffer) => pieces.push(piece));
    request.on("end", () => {
      const { method = "", url: address = "" } = request;
      seen.push({ method, address, body: Buffer.concat(pieces).toString() });
      response.setHeader("content-type", "application/json").end('{"items":[],"next":null}');
    });
  });
  await new Promise<void>((resolve) => stub.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => {
    stub.closeAllConnections();
    stub.close();
  });
  const out = vi.spyOn(process.stdout, "write").mockReturnValue(true);
  onTestFinished(() => out.mockRestore());
  const { port } = stub.address() as AddressInfo;
  const program = createProgram();
  const how = ["--json", "--url", `http://127.0.0.1:${port}`, "--token", "t"];
  const routes = generatedVerbs(program);
  expect(routes.length, "void: too few commands").toBeGreaterThan(90);
  for (const { name, words } of routes) {
    const { input, args } = sampleOf(name);
    seen.length = 0;
    await program.parseAsync([...how, ...words, ...args], { from: "user" });
    const { method, address, body = "" } = requestOf(name, input);
    expect(seen, words.join(" ")).toEqual([{ method, address, body: body ?? "" }]);
  }
});

test("every hook point is asked by the step that its name says", async () => {
  const { HOOK_POINTS } = await import("../../src/index.ts");
  const table = "src/policy/before-call.ts";
  const asked = source.filter((file) => /^src\/(?:gate|flow)\//.test(file) && file !== table);
  const points = Object.keys(HOOK_POINTS);
  expect(points).toHaveLength(14);
  const silent = points.filter((point) => !asked.some((file) => stringsIn(file).includes(point)));
  expect(silent).toEqual([]);
  expect(untested(points)).toEqual([]);
});

test("every gate point is evaluated by the product", async () => {
  const { GATE_POINTS } = await import("../../src/index.ts");
  const files = source.filter((file) => /^src\/(?:gate|delegation|policy)\//.test(file));
  const silent = GATE_POINTS.filter(
    (point) => !files.some((file) => stringsIn(file).includes(point)),
  );
  expect(silent).toEqual([]);
});

test("every flag that a tool declares is read outside of the file that declares it", async () => {
  const { NO_CAPABILITY, NO_METADATA } = await import("../../src/tools/index.ts");
  const flags = [...Object.keys(NO_CAPABILITY), ...Object.keys(NO_METADATA)];
  expect(flags.length, "void: no flags found").toBeGreaterThan(10);
  const elsewhere = source.filter((file) => file !== "src/tools/tool.ts");
  // Some are read by a function of their own, which the product calls.
  const byFunction = flags.filter((flag) => mentions(elsewhere, `${flag}Of`));
  expect(unread(flags, elsewhere).filter((flag) => !byFunction.includes(flag))).toEqual([]);
  expect(untested(flags)).toEqual([]);
});

test("every field of a rule and of a test of the input takes part in matching", () => {
  const rule = fieldsOf("src/policy/policy.ts", "Rule");
  const tests = fieldsOf("src/policy/patterns.ts", "InputTest");
  expect(rule.length + tests.length, "void: no fields found").toBeGreaterThan(15);
  const policy = source.filter((file) => file.startsWith("src/policy/"));
  expect(unread([...rule, ...tests], policy)).toEqual([]);
  expect(untested([...rule, ...tests])).toEqual([]);
});

test("every value that the package exports is used by the product, a test or an example", () => {
  const { exports } = JSON.parse(read("package.json")) as {
    exports: Record<string, { "sallyport-source": string }>;
  };
  const unused = Object.entries(exports).flatMap(([entry, { "sallyport-source": file }]) =>
    exportsOf(file.slice(2))
      // Tables in capitals are data.
      .filter(({ name }) => !/^[A-Z_]+$/.test(name) && !FOR_AUTHORS.includes(name))
      .filter(({ name, from }) => {
        const others = source.filter((one) => one !== from && !one.endsWith("/index.ts"));
        return !mentions([...testFiles, ...throughDoors, ...others], name);
      })
      .map(({ name }) => `${entry}: ${name}`),
  );
  expect(unused).toEqual([]);
});

test("every row of the specification has a test that itself goes through a public door", () => {
  const proved = new Set<string>();
  const ROW = /\b(?:S[0-4]|I)-\d{2,3}\b/g;
  for (const file of testFiles.filter(
    (one) => isTest(one) && !/^tests\/(?:docs|proof)\//.test(one),
  )) {
    const outside = testsIn(file).filter(({ surfaces }) => surfaces.length > 0);
    for (const { code } of outside) for (const id of code.match(ROW) ?? []) proved.add(id);
  }
  // The published contracts: tests/store and tests/tasks run every case on each store.
  for (const file of source.filter((one) => one.includes("/conformance"))) {
    for (const id of stringsIn(file).flatMap((text) => text.match(ROW) ?? [])) proved.add(id);
  }
  expect(PARTS.flatMap(rowsOf).filter((id) => !proved.has(id))).toEqual([]);
});
