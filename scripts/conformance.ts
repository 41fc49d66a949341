// `npm run conformance`: the suite against the fixture server, directly and through the gateway, as a table in the docs. Fails
// when the way through the gateway changes a result.

import { writeFileSync } from "node:fs";
import {
  CHAINS,
  type Chain,
  ERAS,
  fixtureServer,
  gatewayServer,
  ONLY_HTTP,
  runSuite,
  type Score,
  type Scores,
  SUITE_VERSION,
  TASK_SCENARIOS,
  type Target,
  tasksServer,
  total,
} from "../tests/mcp/conformance-run.ts";

const FILE = "docs/reference/mcp-conformance.md";
const names = Object.keys(CHAINS) as Chain[];

const shown = ([passed, failed]: Score | [] = []) =>
  passed === undefined ? "–" : `${passed} / ${failed}`;

async function results(target: Target): Promise<readonly Scores[]> {
  const found: Scores[] = [];
  for (const era of ERAS) {
    const scores = await runSuite(target.url, era);
    process.stdout.write(`${target.name}, ${era}: ${shown(total(scores))}\n`);
    found.push(scores);
  }
  for (const text of new Set(target.problems)) process.stderr.write(`  ${text}\n`);
  return found;
}

const fixture = await fixtureServer();
const columns: (readonly Scores[])[] = [];
try {
  columns.push(await results(fixture));
  for (const name of names) {
    const target = await gatewayServer(name, fixture.url);
    try {
      columns.push(await results(target));
    } finally {
      await target.close();
    }
  }
} finally {
  await fixture.close();
}
const tasks = await tasksServer();
const ownTasks = await runSuite(tasks.url, "2026-07-28").finally(() => tasks.close());

const lines = [
  "# MCP conformance",
  "",
  `Made by \`npm run conformance\` with \`@modelcontextprotocol/conformance\` ${SUITE_VERSION}: checks passed / failed, by scenario. The`,
  "same fixture server (`tools/mcp/fixture-server.mjs`, on the published SDK) is asked directly and through the gateway. The",
  "suite itself speaks HTTP only, so stdio is measured behind it. The `tasks-*` scenarios fail directly because the SDK has no",
  "tasks; the last table has those of the gateway. One score is not compared: in `server-sse-polling` the server closes an HTTP",
  "stream of its own and goes on when the client comes back, which a server on stdio cannot do.",
  "",
];
const problems: string[] = [];
ERAS.forEach((era, index) => {
  const direct = columns[0]?.[index] ?? new Map<string, Score>();
  lines.push(`## ${era}`, "", `| scenario | direct | ${names.join(" | ")} |`);
  lines.push(`|---|${"---|".repeat(names.length + 1)}`);
  for (const [scenario, score] of direct) {
    const row = columns.map((column) => column[index]?.get(scenario) ?? []);
    lines.push(`| ${scenario} | ${row.map((one) => shown(one as Score)).join(" | ")} |`);
    row.forEach((one, place) => {
      const [passed = -1, failed = -1] = one;
      if (passed >= score[0] && failed <= score[1]) return;
      if (names[place - 1]?.includes("stdio") && ONLY_HTTP.includes(scenario)) return;
      problems.push(
        `${names[place - 1]}, ${era}: ${scenario} ${shown(one as Score)}, directly ${shown(score)}`,
      );
    });
  }
  const sums = columns.map((column) => shown(total(column[index] ?? new Map())));
  lines.push(`| **all** | ${sums.map((one) => `**${one}**`).join(" | ")} |`, "");
});

lines.push(
  "## Tasks",
  "",
  "A server without tasks behind the gateway, whose tools wait for a person: what the suite sees as",
);
lines.push(
  "tasks is the gateway's own. `tasks-mrtr-composition` is a task of the server, which passes through.",
);
lines.push(
  "`tasks-status-notifications` is skipped by the suite itself.",
  "",
  "| scenario | gateway |",
  "|---|---|",
);
for (const scenario of TASK_SCENARIOS) {
  const [passed = -1, failed = -1] = ownTasks.get(scenario) ?? [];
  lines.push(`| ${scenario} | ${shown([passed, failed])} |`);
  if (passed < 0 || failed > 0) problems.push(`tasks: ${scenario} ${shown([passed, failed])}`);
}

for (const text of problems) process.stderr.write(`worse: ${text}\n`);
if (problems.length === 0) {
  writeFileSync(FILE, `${lines.join("\n").trimEnd()}\n`);
  process.stdout.write(`wrote ${FILE}\n`);
} else process.exitCode = 1;
