// Paused runs that `sallyport worker` continues: those whose answers are in, each once, with two workers at it.

import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { beforeAll, expect, onTestFinished, test } from "vitest";
import { install } from "../../scripts/install.mjs";

const FLAGS = ["--conditions=sallyport-source", "--disable-warning=ExperimentalWarning"];
const folder = path.join(import.meta.dirname, "../../tools/frameworks");
beforeAll(() => install(folder, "agent frameworks", process.env));

/** By their configurations. */
const FRAMEWORKS = [
  ["the AI SDK", "worker.config.ts"],
  ["OpenAI Agents", "worker-openai.config.ts"],
] as const;
const bin = path.join(import.meta.dirname, "../../src/cli/bin.ts");

test.each(FRAMEWORKS)(
  "two workers continue exactly the runs of %s whose answers are in, each of them once",
  {
    timeout: 180_000,
  },
  async (_, file) => {
    const config = path.join(import.meta.dirname, file);
    const cwd = mkdtempSync(path.join(tmpdir(), "sallyport-worker-"));
    onTestFinished(() => rmSync(cwd, { recursive: true, force: true }));
    const begin = (...args: readonly string[]) => {
      const child = spawn(process.execPath, [...FLAGS, ...args], {
        cwd,
        stdio: ["ignore", "ignore", "pipe"],
      });
      let stderr = "";
      child.stderr.on("data", (chunk) => (stderr += chunk));
      const ended = once(child, "close").then(([code]) => ({ code, stderr }));
      return { child, ended, isWorking: () => stderr.includes("working;") };
    };
    const run = async (...args: readonly string[]) =>
      expect(await begin(...args).ended).toEqual({ code: 0, stderr: "" });
    const lines = (file: string): readonly string[] => {
      const full = path.join(cwd, file);
      return existsSync(full) ? readFileSync(full, "utf8").trim().split("\n") : [];
    };

    await run(config, "start");
    const decide = path.join(import.meta.dirname, "decide-child.ts");
    await run(decide, "approve", "", "a");
    await run(decide, "reject", "not due", "c");
    expect(lines("ledger.txt")).toEqual([]);

    const worker = () => begin(bin, "worker", "--config", config, "--every", "100");
    const workers = [worker(), worker()];
    onTestFinished(() => workers.forEach(({ child }) => void child.kill("SIGKILL")));
    const isDone = () => ["a", "c"].every((name) => JSON.stringify(chat(name)).includes('"done"'));
    const chat = (name: string) =>
      JSON.parse(readFileSync(path.join(cwd, `chat-${name}.json`), "utf8"));
    const areWorking = () => workers.every(({ isWorking }) => isWorking());
    while (!isDone() || !areWorking()) await sleep(100);
    // Long enough for some more rounds of both.
    await sleep(1_000);
    for (const { child } of workers) child.kill("SIGINT");
    for (const { ended } of workers) {
      const { code, stderr } = await ended;
      expect(code, stderr).toBe(0);
      // Its last words: nothing failed afterwards.
      expect(stderr).toMatch(/working; stop it with Ctrl\+C\n$/);
    }
    expect(lines("continued.txt").toSorted()).toEqual(["a", "c"]);
    expect(lines("ledger.txt")).toEqual(["a 1"]);
    expect(JSON.stringify(chat("c"))).toMatch(/not due/);
  },
);
