// One configuration file for every command: where it is found, what wins over it, and what a wrong one is answered with.

import { writeFileSync } from "node:fs";
import path from "node:path";
import { pathToFileURL } from "node:url";
import { expect, test } from "vitest";
import { checkedConfig, createConfiguredGate, env } from "../../src/cli/config.ts";
import { readConfigured } from "../../src/cli/config-file.ts";
import { isSallyportError } from "../../src/model/errors.ts";
import { memoryStore } from "../../src/store/memory/index.ts";
import { defineTool } from "../../src/tools/define-tool.ts";
import { type CliPlace, cliPlace } from "./cli-process.ts";

const root = path.resolve(import.meta.dirname, "../..");
const from = (file: string) => pathToFileURL(path.join(root, "src", file)).href;

/** A configuration that names its tenant and its store, and a tool. */
const MODULE = `
import { defineConfig, env } from "${from("cli/config.ts")}";
import { defineTool } from "${from("tools/define-tool.ts")}";
const note = defineTool({
  name: "notes.write",
  description: "Writes a note.",
  input: { type: "object" },
  safety: { effect: "write" },
  execute: () => "written",
});
export default defineConfig({ tools: [note], tenant: env("SHOP_TENANT"), store: "records.db" });
`;

function withConfig(place: CliPlace, name = "sallyport.config.ts", text = MODULE): string {
  const file = path.join(place.folder, name);
  writeFileSync(file, text);
  return file;
}

test("serve finds sallyport.config.ts in its folder; store and tenant come from it, the secret from the environment", async () => {
  const place = cliPlace({ SHOP_TENANT: "shop" });
  withConfig(place);
  const server = await place.start("serve");
  const store = path.join(place.folder, "records.db");
  const { out } = await place.run("--store", store, "--json", "tools", "list");
  expect(out).toContain("notes.write");
  const { out: me } = await place.run("--store", store, "--json", "me", "get");
  expect(JSON.parse(me)).toMatchObject({ tenant: "shop" });
  expect(await server.stop()).toBe(0);
});

test("flags take precedence over the configuration", async () => {
  const place = cliPlace({ SHOP_TENANT: "shop" });
  const config = withConfig(place, "other.mjs");
  const store = path.join(place.folder, "mine.db");
  const args = ["--store", store, "serve", "--config", config, "--tenant", "books"];
  const server = await place.start(...args);
  const { out } = await place.run("--store", store, "--json", "me", "get");
  expect(JSON.parse(out)).toMatchObject({ tenant: "books" });
  expect(await server.stop()).toBe(0);
});

test("a missing environment variable stops the start with its name", async () => {
  const place = cliPlace();
  withConfig(place);
  const { code, err } = await place.run("serve");
  expect(code).not.toBe(0);
  expect(err).toContain("environment variable SHOP_TENANT");
  expect(() => env("SALLYPORT_NOT_SET")).toThrow(/SALLYPORT_NOT_SET/);
});

test("two configurations in one folder are refused, and --config chooses", async () => {
  const place = cliPlace({ SHOP_TENANT: "shop" });
  withConfig(place);
  withConfig(place, "sallyport.config.mjs", "export default { tools: [] };");
  const { code, err } = await place.run("serve");
  expect([code === 0, err]).toEqual([false, expect.stringContaining("Name one with --config")]);
  const server = await place.start("serve", "--config", "sallyport.config.mjs");
  expect(await server.stop()).toBe(0);
});

test("mcp does not execute a configuration that it finds in a project; SALLYPORT_CONFIG and --config name one", async () => {
  const hostile = "process.stderr.write('executed'); export default { tools: [] };";
  const place = cliPlace();
  withConfig(place, "sallyport.config.mjs", hostile);
  const ignored = await place.run("mcp");
  expect(ignored.err).not.toContain("executed");
  const named = cliPlace({ SALLYPORT_CONFIG: "sallyport.config.mjs" });
  withConfig(named, "sallyport.config.mjs", hostile);
  expect((await named.run("mcp")).err).toContain("executed");
});

test("worker reads the same file, and refuses a wrong field of http by its whole name", async () => {
  const place = cliPlace();
  withConfig(
    place,
    "sallyport.config.mjs",
    "export default { tools: [], http: { signIn: { sessionMs: '1h' } } };",
  );
  for (const command of ["worker", "serve"]) {
    const { code, err } = await place.run(command);
    expect(code, command).not.toBe(0);
    expect(err).toContain("`http.signIn.sessionMs` must be a whole number of milliseconds above 0");
  }
});

test.each([
  [{ http: { hots: "::1" } }, "there is no field `http.hots`. The fields of `http` are host,"],
  [{ http: { oidc: { issuer: 5 } } }, "the field `http.oidc.issuer` must be a text"],
  [{ http: { tls: "yes" } }, "the field `http.tls` must be an object"],
  [{ state: 7 }, "the field `state` must be a text"],
  [{ ["__proto__x"]: 1 }, "there is no field `__proto__x`"],
  [{ constructor: {} }, "there is no field `constructor`"],
])("a wrong field is named with its path: %o", (fields, problem) => {
  const refused = () => checkedConfig({ tools: [], ...fields }, "my.config.ts");
  expect(refused).toThrow(problem);
  expect(refused).toThrow(/^.*my\.config\.ts/);
});

test("tests make the gate that serve makes, over a store of their own", async () => {
  const refund = defineTool({
    name: "billing.refund",
    description: "Pays back.",
    input: { type: "object" },
    safety: { effect: "external" },
    execute: () => "paid",
  });
  const policy = {
    version: "1",
    rules: [{ id: "no", effect: "deny", tool: "billing.*", reason: "closed" }],
  } as const;
  await using store = memoryStore();
  const gate = createConfiguredGate({ tools: [refund], policy, tenant: "shop" }, { store });
  const session = gate.sessions.open({ agent: "agent:billing" });
  const answer = await session.call({ tool: "billing.refund", input: {} });
  expect(answer).toMatchObject({ answer: "denied" });
  expect((await store.heads()).map(({ tenant }) => tenant)).toEqual(["shop"]);
  let refused: unknown;
  try {
    createConfiguredGate({ tools: [], leaseMs: -1 }, { store });
  } catch (error) {
    refused = error;
  }
  expect(isSallyportError(refused, "invalid_input")).toBe(true);
});

test("no call of an agent may touch the configuration file, whatever the policy says", async () => {
  const place = cliPlace();
  const config = withConfig(
    place,
    "sallyport.config.mjs",
    `import { fileTools } from "${from("tools/builtin/files.ts")}";
const rules = [{ id: "all", effect: "allow", tool: "files.*", path: "/**", reason: "everything" }];
export default { tools: fileTools(), policy: { version: "1", rules }, fileRoots: [{ path: ${JSON.stringify(place.folder)}, access: "write" }] };`,
  );
  const flags = { config, data: place.data };
  const read = await readConfigured(flags, { source: "named", otherwise: { tools: [] } });
  await using store = memoryStore();
  const gate = createConfiguredGate(read.config, { store });
  const session = gate.sessions.open({ agent: "agent:a", workingDirectory: place.folder });
  const write = (file: string) =>
    session.call({
      tool: "files.write",
      input: { path: path.join(place.folder, file), content: "x" },
    });
  expect(await write("sallyport.config.mjs")).toMatchObject({ answer: "denied" });
  expect(await write("other.txt")).not.toMatchObject({ answer: "denied" });
});
