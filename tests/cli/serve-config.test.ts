// `serve --config`: the host's module says what is served, and how people sign in.

import { spawn } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { pathToFileURL } from "node:url";
import { expect, onTestFinished, test, vi } from "vitest";
import { createClient, signIn } from "../../src/client/index.ts";

const root = path.dirname(path.dirname(import.meta.dirname));
const from = (file: string) => pathToFileURL(path.join(root, "src", file)).href;

const MODULE = `
import { NO_RULES } from "${from("policy/policy.ts")}";
import { allowAlways } from "${from("gate/guards.ts")}";
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
