// The files in deploy/: metrics, flags, probes and signals that they name exist. What could not be run says so.

import { spawnSync } from "node:child_process";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import path from "node:path";
import { expect, test } from "vitest";
import { createProgram } from "../../src/cli/main.ts";
import { createMetrics } from "../../src/http/metrics.ts";
import { PATHS } from "../../src/http/paths.ts";

const folder = path.resolve(import.meta.dirname, "../../deploy");
const read = (file: string) => readFileSync(path.join(folder, file), "utf8");
const files = readdirSync(folder, { recursive: true, encoding: "utf8" }).filter((file) =>
  /\.\w+$|Dockerfile$/.test(file),
);

test("dashboard and alert rules use only metrics that the server has, and all that it counts are shown", () => {
  const metrics = createMetrics();
  metrics.request("me.get", 200, 0.01);
  const text = metrics.text({ listeners: 0, breakers: [], denials: [] });
  metrics.close();
  const there = new Set(
    [...text.matchAll(/^# TYPE (\S+) (\S+)/gm)].flatMap(([, name = "", type]) =>
      type === "histogram" ? ["_bucket", "_sum", "_count"].map((end) => name + end) : [name],
    ),
  );
  const dashboard = read("grafana/dashboard.json");
  const used = (file: string) =>
    new Set([...file.matchAll(/\b(?:sallyport|process)_[a-z0-9_]+/g)].map(([name]) => name));
  for (const name of [...used(dashboard), ...used(read("grafana/alerts.yaml"))]) {
    expect(there, name).toContain(name);
  }
  const families = [...text.matchAll(/^# TYPE (\S+)/gm)].map(([, name = ""]) => name);
  const shown = [...used(dashboard)].join(" ");
  expect(families.filter((name) => !shown.includes(name))).toEqual([]);
  expect(JSON.parse(dashboard).panels.length).toBeGreaterThanOrEqual(8);
});

test("commands in the deploy files exist, with their flags", () => {
  const program = createProgram();
  const commands = new Map(program.commands.map((one) => [one.name(), one]));
  const lines = files
    .filter((file) => !file.startsWith("grafana") && file !== "README.md")
    .flatMap((file) => read(file).split("\n"))
    .filter((line) => /\b(?:serve|worker)"|bin\.js (?:serve|worker)/.test(line));
  expect(lines.length).toBeGreaterThanOrEqual(6);
  for (const line of lines) {
    const name = /\b(serve|worker)\b(?!:)/.exec(line.replace(/sallyport-\w+/g, ""))?.[1] ?? "";
    const flags = line.match(/--[a-z][a-z-]*/g) ?? [];
    const known = commands.get(name)?.options.map(({ long }) => long) ?? [];
    const everywhere = ["--data", ...program.options.map(({ long }) => long)];
    for (const flag of flags) expect([...known, ...everywhere], line).toContain(flag);
  }
});

// skip: systemd-analyze is not on this machine
test.skipIf(!existsSync("/usr/bin/systemd-analyze"))("systemd accepts the units", () => {
  for (const unit of ["sallyport.service", "sallyport-worker.service"]) {
    const file = path.join(folder, unit);
    const { status, stderr } = spawnSync("systemd-analyze", ["verify", file], { encoding: "utf8" });
    expect([status, stderr], unit).toEqual([0, ""]);
  }
});

test("probes ask paths that exist, and a stop has more time than the server takes", () => {
  const kubernetes = read("kubernetes/sallyport.yaml");
  const probed = [...kubernetes.matchAll(/path: (\/\w+)/g)].map(([, one]) => `GET ${one}`);
  expect(probed).toEqual(["GET /readyz", "GET /healthz"]);
  for (const one of probed) expect(Object.values(PATHS)).toContain(one);
  expect(kubernetes.match(/terminationGracePeriodSeconds: 30/g)).toHaveLength(2);
  expect(read("sallyport.service")).toContain("TimeoutStopSec=30");
  expect(read("compose.yaml")).toContain("stop_grace_period: 30s");
});

test("every file that was not run here says so", () => {
  const notRun = files.filter((file) => !file.startsWith("grafana") && file !== "README.md");
  expect(notRun).toHaveLength(6);
  for (const file of notRun)
    expect(read(file), file).toMatch(/^# Not (?:built|run|started) here:/m);
});
