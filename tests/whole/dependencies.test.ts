import { existsSync, readFileSync } from "node:fs";
import path from "node:path";
import { expect, test } from "vitest";
import { record } from "../support/record.ts";

interface Locked {
  readonly version?: string;
  readonly integrity?: string;
  readonly link?: boolean;
  readonly hasInstallScript?: boolean;
  readonly dev?: boolean;
  readonly devOptional?: boolean;
  readonly optional?: boolean;
  readonly peer?: boolean;
}

interface Manifest {
  readonly version?: string;
  readonly scripts?: Readonly<Record<string, string>>;
  readonly dependencies?: Readonly<Record<string, string>>;
  readonly devDependencies?: Readonly<Record<string, string>>;
}

const ROOT = path.resolve(import.meta.dirname, "../..");
const read = <Json>(file: string): Json =>
  JSON.parse(readFileSync(path.join(ROOT, file), "utf8")) as Json;
const manifest = read<Manifest>("package.json");
const lock = read<{ readonly packages: Readonly<Record<string, Locked>> }>("package-lock.json");
const locked = Object.entries(lock.packages).filter(([place, { link }]) => place !== "" && !link);
/** What npm would run by itself after unpacking; `prepare` is for checkouts only. */
const INSTALLING = ["preinstall", "install", "postinstall"];

test("users get few dependencies, each with a reason and without dependencies of its own [T40]", () => {
  const reaching = locked
    .filter(([, { dev, devOptional, optional, peer }]) => !(dev || devOptional || optional || peer))
    .map(([place]) => place.replace("node_modules/", ""));
  const direct = Object.keys(manifest.dependencies ?? {});
  const scripts = locked.filter(([, { hasInstallScript }]) => hasInstallScript === true).length;
  const figures = { "runtime dependencies": reaching.length, locked: locked.length, scripts };
  record({ goal: "T40", what: "what is installed with us", figures });
  expect(reaching.toSorted()).toEqual(direct.toSorted());
  expect(reaching.length).toBeLessThanOrEqual(8);
  const reasons = readFileSync(
    path.join(ROOT, "docs/decisions/2026-11-15-dependencies.md"),
    "utf8",
  );
  for (const name of direct) expect(reasons, name).toContain(name);
});

test("no install script runs: not ours, not in the lockfile, not in installed packages [T40]", () => {
  const ours = INSTALLING.filter((name) => manifest.scripts?.[name] !== undefined);
  expect(ours).toEqual([]);
  expect(readFileSync(path.join(ROOT, ".npmrc"), "utf8")).toMatch(/^ignore-scripts=true$/m);
  expect(locked.filter(([, { hasInstallScript }]) => hasInstallScript === true)).toEqual([]);
  let looked = 0;
  for (const [place] of locked) {
    const file = path.join(place, "package.json");
    if (!existsSync(path.join(ROOT, file))) continue;
    looked += 1;
    const { scripts = {} } = read<Manifest>(file);
    const wanted = INSTALLING.filter((name) => scripts[name]);
    expect(wanted, place).toEqual([]);
  }
  expect(looked, "void: nothing is installed").toBeGreaterThan(100);
});

test("the lockfile has exact versions and hashes, and the installed packages match it [T40]", () => {
  const wanted = { ...manifest.dependencies, ...manifest.devDependencies };
  for (const [name, version] of Object.entries(wanted)) {
    expect(version, `${name} is not an exact version`).toMatch(/^\d+\.\d+\.\d+(?:-[\w.]+)?$/);
    expect(lock.packages[`node_modules/${name}`]?.version, name).toBe(version);
  }
  for (const [place, { integrity, version }] of locked) {
    expect(integrity, place).toMatch(/^sha512-[A-Za-z0-9+/]{86}==$/);
    const file = path.join(place, "package.json");
    if (existsSync(path.join(ROOT, file))) {
      expect(read<Manifest>(file).version, place).toBe(version);
    }
  }
});
