// What the Dockerfile does, without a container: its install line in an empty folder, then its entry point over PostgreSQL.

import { type ChildProcess, execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { promisify } from "node:util";
import { expect, inject, onTestFinished, test } from "vitest";
import manifest from "../../package.json" with { type: "json" };
import { freePort } from "../../src/crashkit/child.ts";
import { freshDatabase } from "../support/postgres-database.ts";
import { SCALE } from "../support/scale.ts";
import { packTarball } from "./packed.ts";
import { root } from "./pages.ts";

const run = promisify(execFile);
const dockerfile = readFileSync(path.join(root, "deploy/Dockerfile"), "utf8");

const CONFIG = `
import { defineConfig } from "sallyport/config";

export default defineConfig({ tools: [] });
`;

// skip: packs and installs the package with its drivers (20 s); run by SCALE=proof and SCALE=full
test.skipIf(SCALE === "test")(
  "the image's install line and entry point serve over PostgreSQL, and SIGTERM ends them with 0",
  {
    timeout: 300_000,
  },
  async () => {
    const app = mkdtempSync(path.join(tmpdir(), "sallyport-image-"));
    const database = await freshDatabase(inject("pgUrl"));
    onTestFinished(async () => {
      rmSync(app, { recursive: true, force: true });
      await database.drop();
    });
    for (const command of installCommands(await packTarball())) {
      await run("npm", command, { cwd: app });
    }
    for (const folder of ["config", "data", "state"]) mkdirSync(path.join(app, folder));
    writeFileSync(path.join(app, "config/sallyport.config.ts"), CONFIG);

    const port = await freePort();
    const [node = "", ...entry] = JSON.parse(lineOf("ENTRYPOINT"));
    expect(node).toBe("node");
    const inApp = (words: readonly string[]) =>
      words.map((word) => (word.startsWith("/") ? path.join(app, word) : word));
    const start = (command: readonly string[]): ChildProcess =>
      spawn(process.execPath, [...inApp(entry), ...command], {
        cwd: app,
        env: {
          ...process.env,
          NODE_ENV: "production",
          SALLYPORT_DATABASE: database.url,
          SALLYPORT_CONFIG: path.join(app, "config/sallyport.config.ts"),
          SALLYPORT_STATE: path.join(app, "state"),
        },
        stdio: ["ignore", "pipe", "pipe"],
      });
    // Its own command listens on every address, which needs a sign-in method; here loopback only.
    const [command] = JSON.parse(lineOf("CMD"));
    const server = start([command, "--port", String(port)]);
    const said = hear(server);
    await expect
      .poll(() => status(`http://127.0.0.1:${port}/readyz`), { timeout: 60_000 })
      .toBe(200);
    const worker = start(["worker"]);
    const workerSaid = hear(worker);
    await expect.poll(workerSaid, { timeout: 60_000 }).toContain("working");
    for (const [one, words] of [
      [server, said],
      [worker, workerSaid],
    ] as const) {
      one.kill("SIGTERM");
      const [code] = await once(one, "exit");
      expect(code, words()).toBe(0);
    }
  },
);

/** The install line of the image, with the tarball in its place and the versions that the other tests use. */
function installCommands(tarball: string): readonly (readonly string[])[] {
  const versions: Record<string, string> = { ...manifest.devDependencies, nodemailer: "latest" };
  const line = dockerfile.split("\n").find((one) => one.includes("npm install /tmp/")) ?? "";
  const commands = line
    .replace("RUN ", "")
    .split(" && ")
    .filter((one) => one.startsWith("npm "));
  expect(commands).toHaveLength(3);
  return commands.map((one) => {
    const [, ...words] = one.split(" ");
    const asHere = words.map((word) => {
      if (word.endsWith(".tgz")) return tarball;
      const [name = "", version] = word.split("@");
      return version === undefined || versions[name] === undefined
        ? word
        : `${name}@${versions[name]}`;
    });
    return asHere[0] === "install" ? [...asHere, "--prefer-offline", "--no-audit"] : asHere;
  });
}

function lineOf(instruction: string): string {
  const lines = dockerfile.split("\n").filter((one) => one.startsWith(`${instruction} [`));
  expect(lines, instruction).toHaveLength(1);
  return (lines[0] ?? "").slice(instruction.length + 1);
}

function hear(child: ChildProcess): () => string {
  let text = "";
  child.stdout?.on("data", (part) => {
    text += part;
  });
  child.stderr?.on("data", (part) => {
    text += part;
  });
  return () => text;
}

async function status(url: string): Promise<number> {
  try {
    return (await fetch(url)).status;
  } catch {
    return 0;
  }
}
