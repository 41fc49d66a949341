import type { AuditEntry } from "../../src/model/audit-entry.ts";
import type { TaskId } from "../../src/model/task.ts";
import type { Call } from "./linearizability.ts";
import type { TaskInput, TaskOutput } from "./task-model.ts";
import type { WorkerLine } from "./worker-child.ts";

type Asked = Extract<WorkerLine, { start: number }>;
export type TaskCall = Call<TaskInput, TaskOutput>;

/**
 * What was asked of each task and answered, from the lines of all processes. A claim names no task, so one without an
 * answer is put where the trail says that it led to; if it led nowhere, nothing happened.
 */
export function historiesOf(
  all: readonly (readonly WorkerLine[])[],
  trail: readonly AuditEntry[],
): ReadonlyMap<TaskId, readonly TaskCall[]> {
  const histories = new Map<TaskId, TaskCall[]>();
  const put = (id: TaskId, call: TaskCall) => {
    histories.set(id, [...(histories.get(id) ?? []), call]);
  };
  const unanswered = new Map<string, Asked>();
  const told = new Set<string>();
  for (const lines of all) {
    const open = new Map<number, Asked>();
    for (const line of lines) {
      if ("start" in line) {
        open.set(line.n, line);
        continue;
      }
      const asked = open.get(line.n);
      open.delete(line.n);
      if (asked === undefined || "nothing" in line) continue;
      const { id, end, output } = line;
      put(id, { start: asked.start, end, input: inputOf(asked), output });
      if (asked.op === "claim" && output.ok) told.add(`${id} ${output.fence}`);
    }
    for (const asked of open.values()) {
      if (asked.op === "claim") unanswered.set(asked.worker, asked);
      else
        put(asked.id, {
          start: asked.start,
          end: Infinity,
          input: inputOf(asked),
          output: undefined,
        });
    }
  }
  for (const { type, subject, actor, data } of trail) {
    const asked = unanswered.get(actor);
    if (type !== "task.claimed" || asked === undefined) continue;
    if (told.has(`${subject} ${JSON.parse(data ?? "{}").fence}`)) continue;
    put(subject, { start: asked.start, end: Infinity, input: inputOf(asked), output: undefined });
  }
  return histories;
}

function inputOf(asked: Asked): TaskInput {
  const { op, worker } = asked;
  return op === "claim" ? { op, worker } : { op, worker, fence: asked.fence };
}

/**
 * What the trail says of each task must be a life: claimed only when it is free, fences that grow, completed once and
 * under the last claim. Answers with what is wrong.
 */
export function problemsIn(trail: readonly AuditEntry[]): readonly string[] {
  const problems: string[] = [];
  const held = new Map<TaskId, number>();
  const fences = new Map<TaskId, number>();
  const completed = new Set<TaskId>();
  for (const { seq, type, subject: id, data } of trail) {
    const fence = Number(JSON.parse(data ?? "{}").fence ?? 0);
    const wrong = (what: string) => problems.push(`${seq} ${type} ${id}: ${what}`);
    if (completed.has(id)) wrong("something happened after its completion");
    if (type === "task.claimed") {
      if (held.has(id)) wrong("claimed while it was held");
      if (fence <= (fences.get(id) ?? 0)) wrong("the fence did not grow");
      fences.set(id, fence);
      held.set(id, fence);
    } else if (type === "task.expired") held.delete(id);
    else if (type === "task.completed" || type === "task.renewed") {
      if (held.get(id) !== fence) wrong("written under a claim that is over");
      if (type === "task.completed") completed.add(id);
    }
  }
  return problems;
}
