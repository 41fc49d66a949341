import type { AuditEntry } from "../../src/model/audit-entry.ts";
import type { Store } from "../../src/store/store.ts";
import type { Known } from "./people-and-agents.ts";

/** What people and workers were told against what is stored; every violation as a sentence. */
export async function checkPeople(store: Store, tenantName: string, known: Known) {
  const { interactions, tasks, audit } = store.tenant(tenantName);
  const problems: string[] = [];
  for (const [id, { by, outcome }] of known.decided) {
    const now = await interactions.get(id);
    if (now.answeredBy !== by || now.outcome !== outcome) {
      problems.push(
        `I10 ${by} was told ${outcome} of ${id}; stored: ${now.outcome} by ${now.answeredBy}`,
      );
    }
  }
  const trail = await trailOf(audit);
  const times = (type: string) =>
    Map.groupBy(
      trail.filter((entry) => entry.type === type),
      ({ subject }) => subject,
    );
  for (const [id, all] of times("interaction.answered")) {
    if (all.length > 1) problems.push(`I10 ${id} was answered ${all.length} times`);
  }
  for (const [id, all] of times("task.completed")) {
    if (all.length > 1) problems.push(`I7 task ${id} was completed ${all.length} times`);
  }
  const all = await tasks.list();
  const subjects = Map.groupBy(all, ({ subject }) => subject);
  for (const subject of known.added) {
    const count = subjects.get(subject)?.length ?? 0;
    if (count !== 1) problems.push(`I9 the task "${subject}" is there ${count} times`);
  }
  for (const [id, result] of known.completed) {
    const task = all.find((one) => one.id === id);
    if (task?.status !== "completed" || task.result !== result) {
      problems.push(
        `I9 ${id} was completed with "${result}"; stored: ${task?.status} "${task?.result}"`,
      );
    }
  }
  return problems;
}

async function trailOf(audit: {
  read(range: { after: number; limit: number }): Promise<readonly AuditEntry[]>;
}) {
  const all: AuditEntry[] = [];
  for (;;) {
    const page = await audit.read({ after: all.length, limit: 1_000 });
    if (page.length === 0) return all;
    all.push(...page);
  }
}
