// `sallyport crashkit` as a user runs it, against tools of their own: good ones pass, careless ones are found out.

import { spawn } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, expect, test } from "vitest";
import type { CrashKitReport } from "../../src/crashkit/report.ts";
import { SCALE } from "../support/scale.ts";

const root = path.dirname(path.dirname(import.meta.dirname));
const folder = await mkdtemp(path.join(tmpdir(), "sallyport-crashkit-command-"));
afterAll(() => rm(folder, { recursive: true }));

async function crashkit(args: readonly string[], env: Readonly<Record<string, string>>) {
  const bin = path.join(root, "src/cli/bin.ts");
  const node = ["--conditions=sallyport-source", "--disable-warning=ExperimentalWarning", bin];
  const child = spawn(process.execPath, [...node, "crashkit", ...args], {
    env: { ...process.env, ...env },
    stdio: ["ignore", "pipe", "pipe"],
  });
  let out = "";
  let err = "";
  child.stdout.on("data", (piece) => (out += piece));
  child.stderr.on("data", (piece) => (err += piece));
  const code = await new Promise<number | null>((resolve) => child.once("close", resolve));
  return { code, out, err };
}

const own = fileURLToPath(new URL("./own-shop.ts", import.meta.url));

// skip: the careless ones walk the same way; good ones are worth their time in a proof.
test.skipIf(SCALE === "test")(
  "the user's own tools pass, with counts and progress [G5]",
  {
    timeout: 120_000,
  },
  async () => {
    const env = { SHOP_FOLDER: path.join(folder, "good") };
    const args = ["--config", own, "--cycles", "3", "--seed", "3", "--json"];
    const { code, out, err } = await crashkit(args, env);
    expect(err).toContain("3 of 3, 0 violations");
    const report: CrashKitReport = JSON.parse(out);
    expect(report.violations).toEqual([]);
    expect(report).toMatchObject({ ok: true, mode: "random", seed: 3, exercised: { cycles: 3 } });
    expect(report.exercised["effects"], "void: nothing was ordered").toBeGreaterThan(0);
    expect(code).toBe(0);
  },
);

test("a target that accepts a key twice is reported, and the command fails [G5 I7]", {
  timeout: 120_000,
}, async () => {
  const env = { SHOP_FOLDER: path.join(folder, "careless"), SHOP_IS_CARELESS: "yes" };
  const { code, out } = await crashkit(["--config", own, "--cycles", "3", "--seed", "3"], env);
  expect(out).toMatch(/^\d+ violations:\n {2}I7 .* took effect 2 times/m);
  expect(code).toBe(1);
});

test("a module that cannot be tested is rejected with what is missing", async () => {
  const { code, err } = await crashkit(["--config", path.join(root, "vitest.config.ts")], {});
  expect(err).toContain("export crashkit.calls and crashkit.effects too");
  expect(code).toBe(3);
});
