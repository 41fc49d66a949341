// `serve --config`: the host's module says what is served, and how people sign in.

import { spawn } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { pathToFileURL } from "node:url";
import { expect, onTestFinished, test, vi } from "vitest";
import { createClient, signIn } from "../../src/client/index.ts";
import { cliPlace } from "./cli-process.ts";

const root = path.dirname(path.dirname(import.meta.dirname));
const from = (file: string) => pathToFileURL(path.join(root, "src", file)).href;

const MODULE = `
import { NO_RULES } from "${from("policy/policy.ts")}";
import { allowAlways } from "${from("gate/review.ts")}";
const nobody = { name: "nobody", review: async () => ({ approved: false, score: 0, severity: "block", reason: "no", validator: "nobody", policyVersion: "" }) };
export default {
  tools: [],
  validators: { tech: nobody, business: nobody },
  guard: allowAlways,
  policy: NO_RULES,
  http: {
    signIn: { roles: ["auditor"] },
    oidc: { issuer: "https://id.example.org", clientId: "gate", identify: () => undefined },
  },
};
`;

test("a config module sets OIDC sign-in and the roles of people who sign in by link", async () => {
  const folder = mkdtempSync(path.join(tmpdir(), "sallyport-serve-"));
  const config = path.join(folder, "gate.mjs");
  writeFileSync(config, MODULE);
  const flags = ["--conditions=sallyport-source", "--disable-warning=ExperimentalWarning"];
  const args = [...flags, path.join(root, "src/cli/bin.ts"), "serve", "--config", config];
  const child = spawn(process.execPath, args, { cwd: folder });
  const ended = new Promise<number | null>((resolve) => child.once("close", resolve));
  onTestFinished(async () => {
    child.kill("SIGINT");
    expect(await ended).toBe(0);
    rmSync(folder, { recursive: true, force: true });
  });
  let said = "";
  child.stdout.on("data", (piece) => (said += piece));
  child.stderr.on("data", (piece) => (said += piece));
  await vi.waitFor(() => expect(said).toContain("/signin?link="), 60_000);
  const url = /Sallyport is at (\S+)/.exec(said)?.[1] ?? "";
  const link = /http:\S+link=\S+/.exec(said)?.[0] ?? "";
  expect(await (await fetch(`${url}/signin`)).text()).toContain("Sign in with your organisation");
  const me = await createClient(await signIn({ link })).me.get();
  expect(me).toMatchObject({ subject: "person:you", roles: ["auditor"], groups: [] });
});

const LIST = `
import { markdownTaskStore } from "${from("tasks/markdown-task-store.ts")}";
export default { tools: [], tasks: markdownTaskStore({ path: "TASKS.md" }) };
`;

test("a config module puts the task list into a Markdown file, and the command line exports it [S4-70]", async () => {
  const place = cliPlace();
  const config = path.join(place.folder, "gate.mjs");
  writeFileSync(config, LIST);
  const file = path.join(place.folder, "TASKS.md");
  writeFileSync(
    file,
    "# Shop\n\n## Count shirts\n\n- id: shirts\n- status: claimed\n- claimed_by: agent-3\n",
  );
  const running = await place.start("serve", "--config", config);
  const listed = await place.run("tasks", "export", "--format", "json", "--json");
  expect(listed.code).toBe(0);
  const { text } = JSON.parse(listed.out) as { text: string };
  expect(JSON.parse(text)).toMatchObject([{ id: "shirts", claimed_by: "agent-3" }]);
  expect(await running.stop()).toBe(0);
});

test("a task store that is none is refused when the gate is made", async () => {
  const place = cliPlace();
  const config = path.join(place.folder, "gate.mjs");
  writeFileSync(config, "export default { tools: [], tasks: { path: 'TASKS.md' } };");
  const ended = await place.run("serve", "--config", config);
  expect(ended.code).not.toBe(0);
  expect(ended.err).toContain("A task store has the function get");
});
