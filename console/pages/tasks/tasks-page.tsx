import { queryOptions, useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { type AnswerOf, isSallyportError } from "sallyport/client";
import { client } from "../../app/client.ts";
import { all, meQuery } from "../../app/queries.ts";
import { useSending } from "../../app/sending.ts";
import { Badge } from "../../ui/badge.tsx";
import { Button } from "../../ui/button.tsx";
import { Empty, PageTitle, Problem } from "../../ui/panel.tsx";
import { Ago, Until } from "../../ui/time.tsx";
import { Untrusted } from "../../ui/untrusted.tsx";
import { ReasonDialog } from "../item/reason-dialog.tsx";

type Task = AnswerOf<"tasks.get">;

const tasksQuery = queryOptions({
  queryKey: ["tasks"],
  queryFn: ({ signal }) =>
    all((cursor) => client.tasks.list({ limit: 500, ...cursor }, { signal })),
});

const COLUMNS = [
  ["pending", "To do"],
  ["claimed", "In progress"],
  ["completed", "Done"],
  ["failed", "Failed"],
] as const;

/** Of the finished tasks only the newest are shown. */
const MOST_CARDS = 50;

type Asking =
  | { readonly what: "add" }
  | { readonly what: "release" | "fail" | "reopen"; readonly task: Task };

export function TasksPage() {
  const { data: tasks, error } = useQuery(tasksQuery);
  const { data: me } = useQuery(meQuery);
  const [asking, setAsking] = useState<Asking>();
  const mayManage = me?.roles.includes("operator") === true;
  if (isSallyportError(error, "not_found")) return <Empty>This server has no task list.</Empty>;
  return (
    <div className="p-3">
      <PageTitle title="Tasks">
        <Button tone="primary" disabled={!mayManage} onClick={() => setAsking({ what: "add" })}>
          Add a task
        </Button>
      </PageTitle>
      <Problem error={error} />
      <div className="grid gap-3 md:grid-cols-2 xl:grid-cols-4">
        {COLUMNS.map(([status, name]) => (
          <Column
            key={status}
            name={name}
            tasks={(tasks ?? []).filter((task) => task.status === status)}
            mayManage={mayManage}
            onAsk={setAsking}
          />
        ))}
      </div>
      {asking !== undefined && <TaskDialog asking={asking} onClose={() => setAsking(undefined)} />}
    </div>
  );
}

interface ColumnProps {
  readonly name: string;
  readonly tasks: readonly Task[];
  readonly mayManage: boolean;
  readonly onAsk: (asking: Asking) => void;
}

function Column({ name, tasks, mayManage, onAsk }: ColumnProps) {
  const shown = tasks
    .toSorted((a, b) => (b.priority ?? 0) - (a.priority ?? 0))
    .slice(tasks[0]?.status === "completed" ? -MOST_CARDS : 0);
  return (
    <section aria-label={name} className="border-line bg-raised rounded-lg border p-2">
      <h2 className="mb-2 flex justify-between px-1">
        {name} <span className="text-muted font-normal">{tasks.length}</span>
      </h2>
      <ul className="space-y-2">
        {shown.map((task) => (
          <Card key={task.id} task={task} mayManage={mayManage} onAsk={onAsk} />
        ))}
      </ul>
      {tasks.length > shown.length && (
        <p className="text-muted px-1 pt-1">… and {tasks.length - shown.length} older</p>
      )}
    </section>
  );
}

function Card({
  task,
  mayManage,
  onAsk,
}: { task: Task } & Pick<ColumnProps, "mayManage" | "onAsk">) {
  const {
    subject,
    description,
    claimer,
    leaseUntil,
    result,
    failureReason,
    priority,
    role,
    blockedBy = [],
  } = task;
  return (
    <li className="border-line bg-panel lazy-row rounded-md border p-2" data-task={task.id}>
      <div className="font-medium">
        <Untrusted text={subject} inline />
      </div>
      {description !== "" && (
        <div className="text-muted line-clamp-3">
          <Untrusted text={description} inline />
        </div>
      )}
      <div className="mt-1 flex flex-wrap items-center gap-1.5 text-xs">
        {priority !== undefined && <Badge tone="accent">priority {priority}</Badge>}
        {role !== undefined && (
          <Badge>
            <Untrusted text={role} inline />
          </Badge>
        )}
        {blockedBy.length > 0 && <Badge tone="warn">waits for {blockedBy.length}</Badge>}
        {claimer !== undefined && task.status === "claimed" && (
          <span>
            <Untrusted text={claimer} inline />
            {leaseUntil !== undefined && (
              <>
                {", "}
                <Until at={leaseUntil} calm />
              </>
            )}
          </span>
        )}
        <span className="text-muted">
          <Ago at={task.completedAt ?? task.claimedAt ?? task.createdAt} />
        </span>
      </div>
      {result !== undefined && (
        <div className="text-ok mt-1 line-clamp-3">
          <Untrusted text={result} inline />
        </div>
      )}
      {failureReason !== undefined && (
        <div className="text-danger mt-1 line-clamp-3">
          <Untrusted text={failureReason} inline />
        </div>
      )}
      {mayManage && task.status === "claimed" && (
        <div className="mt-2 flex gap-2">
          <Button onClick={() => onAsk({ what: "release", task })}>Release</Button>
          <Button tone="danger" onClick={() => onAsk({ what: "fail", task })}>
            Fail
          </Button>
        </div>
      )}
      {mayManage && task.status === "failed" && (
        <div className="mt-2">
          <Button onClick={() => onAsk({ what: "reopen", task })}>Reopen</Button>
        </div>
      )}
    </li>
  );
}

const TITLES = {
  add: ["Add a task", "What needs to be done? One line.", "Add"],
  release: ["Release the task", "Why?", "Release"],
  fail: ["Mark as failed", "Why?", "Fail"],
  reopen: ["Reopen the task", "Why?", "Reopen"],
} as const;

function TaskDialog({ asking, onClose }: { asking: Asking; onClose: () => void }) {
  const { busy, error, run } = useSending(["tasks"], onClose);
  const [title, label, submit] = TITLES[asking.what];
  const send = (text: string) => run(() => change(asking, text));
  return (
    <ReasonDialog
      title={title}
      label={label}
      submit={submit}
      required={asking.what === "add" || asking.what === "fail"}
      busy={busy}
      error={error}
      onSubmit={send}
      onClose={onClose}
    />
  );
}

function change(asking: Asking, text: string): Promise<Task> {
  if (asking.what === "add") return client.tasks.add({ subject: text });
  const { id } = asking.task;
  if (asking.what === "release") return client.tasks.release({ id, fence: "any", reason: text });
  if (asking.what === "fail") return client.tasks.fail({ id, fence: "any", reason: text });
  return client.tasks.reopen({ id, reason: text });
}
