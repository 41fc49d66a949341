// A real Chromium for the tests: CHROME_PATH, else the one from npm, unpacked once, else one on PATH. Never a silent skip.

import { execFileSync } from "node:child_process";
import { existsSync, linkSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import path from "node:path";
import { brotliDecompressSync } from "node:zlib";
import { type Browser, chromium } from "playwright-core";

const require = createRequire(import.meta.url);
const root = path.resolve(import.meta.dirname, "../..");

const FLAGS = [
  "--no-sandbox",
  "--disable-gpu",
  "--disable-quic",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
];

export async function launchBrowser(): Promise<Browser> {
  return chromium.launch({ executablePath: chromiumPath(), headless: true, args: FLAGS });
}

function chromiumPath(): string {
  return process.env["CHROME_PATH"] ?? unpackedChromium() ?? onPath();
}

/** Our own unpacking: the package's would use a fixed name in the shared temporary folder, where anybody could plant a file. */
export function unpackedChromium(): string | undefined {
  if (process.platform !== "linux" || process.arch !== "x64") return undefined;
  const entry = require.resolve("@sparticuz/chromium");
  const home = entry.slice(
    0,
    entry.lastIndexOf(`${path.sep}chromium${path.sep}`) + "/chromium".length,
  );
  const { version } = JSON.parse(readFileSync(path.join(home, "package.json"), "utf8"));
  const cache = path.join(root, "node_modules/.cache");
  const file = path.join(cache, `chromium-${version}`);
  if (existsSync(file)) return file;
  mkdirSync(cache, { recursive: true });
  const partial = `${file}.${process.pid}`;
  const packed = readFileSync(path.join(home, "bin/chromium.br"));
  writeFileSync(partial, brotliDecompressSync(packed), { mode: 0o755 });
  // Two test files may unpack at the same time; the first one in place counts and stays, because it may be running by now.
  try {
    linkSync(partial, file);
  } catch (error) {
    if (!existsSync(file)) throw error;
  } finally {
    rmSync(partial, { force: true });
  }
  return file;
}

function onPath(): string {
  for (const name of ["chromium", "chromium-browser", "google-chrome"]) {
    try {
      return execFileSync("which", [name], { encoding: "utf8" }).trim();
    } catch {
      // The next name, then the error below.
    }
  }
  throw new Error("No Chromium: set CHROME_PATH to one, or install one.");
}
