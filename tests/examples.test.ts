import { spawn } from "node:child_process";
import { readdirSync } from "node:fs";
import path from "node:path";
import { expect, test } from "vitest";
import { install } from "../scripts/install.mjs";
import { noHosts } from "./support/hosts.ts";

const root = path.dirname(import.meta.dirname);
await install(path.join(root, "tools/frameworks"), "agent frameworks", process.env);
const examples = readdirSync(path.join(root, "examples"));

/** Without its program it would only say that it is skipped. In the proof tests/adapters/claude-agent.test.ts runs it. */
const runnable = examples.filter((name) => name !== "claude-agent" || noHosts === undefined);

test.each(runnable)("the example %s runs and passes its own checks", async (name) => {
  const { code, output } = await run(path.join("examples", name, "main.ts"));
  expect(output, output).not.toContain("Error");
  expect(code, output).toBe(0);
});

/** With a key an example would talk to a real model. */
const withoutKeys = Object.fromEntries(
  Object.entries(process.env).filter(([name]) => !name.endsWith("_API_KEY")),
);

function run(file: string): Promise<{ code: number | null; output: string }> {
  const flags = ["--conditions=sallyport-source", "--disable-warning=ExperimentalWarning"];
  const child = spawn(process.execPath, [...flags, file], {
    cwd: root,
    stdio: ["ignore", "pipe", "pipe"],
    env: withoutKeys,
  });
  let output = "";
  child.stdout.on("data", (chunk) => (output += chunk));
  child.stderr.on("data", (chunk) => (output += chunk));
  return new Promise((resolve) => child.on("close", (code) => resolve({ code, output })));
}
