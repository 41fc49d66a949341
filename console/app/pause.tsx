import { useQuery } from "@tanstack/react-query";
import { useRouterState } from "@tanstack/react-router";
import { type FormEvent, useId, useState } from "react";
import { Button } from "../ui/button.tsx";
import { Dialog, DialogActions } from "../ui/dialog.tsx";
import { FIELD, Field } from "../ui/field.tsx";
import { Problem } from "../ui/panel.tsx";
import { Ago } from "../ui/time.tsx";
import { Untrusted } from "../ui/untrusted.tsx";
import { client, type Interaction, type Me } from "./client.ts";
import { toolsIn } from "./facts-of.ts";
import { useKeys } from "./keys.ts";
import { tell } from "./notice.ts";
import { inboxQuery, pausesQuery, switchQuery, toolsQuery } from "./queries.ts";
import { useSending } from "./sending.ts";
import { plural } from "./words.ts";

type Kind = "all" | "agent" | "tool" | "session";
export interface Scope {
  readonly kind: Kind;
  readonly subject: string;
}

const EVERYTHING: Scope = { kind: "all", subject: "" };

function mayPause({ roles }: Me): boolean {
  return roles.some((role) => role === "operator" || role === "admin");
}

/** Always there, one question away. */
export function PauseButton({ me }: { me: Me }) {
  const { data } = useQuery(switchQuery);
  const [open, setOpen] = useState<"" | "pause" | "resume">("");
  const isAll = data?.stopped === true;
  const may = mayPause(me) && data !== undefined;
  const scope = useScopeOfPage();
  useKeys({ p: may ? () => setOpen(isAll ? "resume" : "pause") : undefined });
  return (
    <>
      <Button
        tone={isAll ? "primary" : "danger"}
        disabled={!may}
        hotkey="p"
        title={mayPause(me) ? "" : "Only operators and admins can pause"}
        onClick={() => setOpen(isAll ? "resume" : "pause")}
      >
        {isAll ? "Resume" : "Pause"}
      </Button>
      {open === "pause" && <PauseDialog first={scope} onClose={() => setOpen("")} />}
      {open === "resume" && <ResumeDialog scope={EVERYTHING} onClose={() => setOpen("")} />}
    </>
  );
}

/** The run or the agent of the page one is on, as the first choice. */
function useScopeOfPage(): Scope {
  const path = useRouterState({ select: ({ location }) => location.pathname });
  const { data: inbox } = useQuery(inboxQuery);
  const [, page, id = ""] = path.split("/").map(decodeURIComponent);
  if (page === "sessions" && id !== "") return { kind: "session", subject: id };
  const item = inbox?.items.find((one) => one.id === id);
  const agent = item?.chain[0];
  return agent === undefined ? EVERYTHING : { kind: "agent", subject: agent };
}

const KINDS: readonly (readonly [Kind, string])[] = [
  ["all", "Everything: all agents"],
  ["agent", "One agent"],
  ["tool", "Tools by pattern, like orders.*"],
  ["session", "One run"],
];

/** What to pause, why, and what that means now. */
export function PauseDialog({ first, onClose }: { first: Scope; onClose: () => void }) {
  const id = useId();
  const [scope, setScope] = useState<Scope>(first);
  const [reason, setReason] = useState("");
  const { busy, error, run } = useSending(["switch"], onClose);
  const { data: inbox } = useQuery(inboxQuery);
  const { data: tools } = useQuery(toolsQuery);
  const items = inbox?.items ?? [];
  const agents = [...new Set(items.flatMap(({ chain }) => chain.slice(0, 1)))].sort();
  const waiting = items.filter((item) => isCovered(item, scope)).length;
  const ready = reason.trim() !== "" && (scope.kind === "all" || scope.subject !== "") && !busy;
  const send = (event: FormEvent) => {
    event.preventDefault();
    if (!ready) return;
    const why = reason.trim();
    const { kind, subject } = scope;
    run(async () =>
      kind === "all"
        ? client.switch.stop({ reason: why })
        : client.pauses.pause({ kind, subject, reason: why }),
    ).catch(() => {});
  };
  return (
    <Dialog title="Pause" onClose={onClose}>
      <form onSubmit={send} className="space-y-3">
        <Field id={`${id}-kind`} label="What">
          <select
            id={`${id}-kind`}
            value={scope.kind}
            onChange={({ target }) => {
              const kind = target.value as Kind;
              setScope({ kind, subject: kind === first.kind ? first.subject : "" });
            }}
            className={FIELD}
          >
            {KINDS.map(([kind, words]) => (
              <option key={kind} value={kind}>
                {words}
              </option>
            ))}
          </select>
        </Field>
        {scope.kind !== "all" && (
          <Field id={`${id}-subject`} label={SUBJECTS[scope.kind]}>
            <input
              id={`${id}-subject`}
              list={`${id}-known`}
              value={scope.subject}
              onChange={({ target }) => setScope({ ...scope, subject: target.value.trim() })}
              className={`${FIELD} font-mono`}
            />
            <datalist id={`${id}-known`}>
              {(scope.kind === "agent" ? agents : (tools ?? []).map(({ name }) => name)).map(
                (name) => (
                  <option key={name} value={name} />
                ),
              )}
            </datalist>
          </Field>
        )}
        <Field id={`${id}-why`} label="Reason (recorded in the audit log)">
          <textarea
            id={`${id}-why`}
            autoFocus
            rows={2}
            value={reason}
            onChange={({ target }) => setReason(target.value)}
            onKeyDown={(event) => {
              if (event.key === "Enter" && !event.shiftKey) send(event);
            }}
            className={FIELD}
          />
        </Field>
        <p>
          {scope.kind === "all" ? "No agent can" : "This cannot"} change anything until you resume.
          Calls already running will finish. Approvals are kept and run after Resume.{" "}
          <strong>{waiting} waiting.</strong>
        </p>
        <Problem error={error} />
        <DialogActions onCancel={onClose}>
          <Button type="submit" tone="danger" disabled={!ready}>
            {busy ? "Sending…" : scope.kind === "all" ? "Pause all" : "Pause this"}
          </Button>
        </DialogActions>
      </form>
    </Dialog>
  );
}

const SUBJECTS = { agent: "Agent", tool: "Tool or pattern", session: "Run" } as const;

function isCovered(item: Interaction, { kind, subject }: Scope): boolean {
  if (kind === "all") return true;
  if (kind === "agent") return item.chain.includes(subject);
  if (kind === "session") return item.sessionId === subject;
  const pattern = new RegExp(`^${subject.split("*").map(escaped).join(".*")}$`);
  return subject !== "" && toolsIn(item).some((tool) => pattern.test(tool));
}

function escaped(text: string): string {
  return text.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
}

function ResumeDialog({ scope, onClose }: { scope: Scope; onClose: () => void }) {
  const id = useId();
  const [reason, setReason] = useState("");
  const { busy, error, run } = useSending(["switch"], onClose);
  const ready = reason.trim() !== "" && !busy;
  const send = (event: FormEvent) => {
    event.preventDefault();
    if (!ready) return;
    const why = reason.trim();
    run(async () => {
      const { kind, subject } = scope;
      if (kind === "all") await client.switch.resume({ reason: why });
      else await client.pauses.resume({ kind, subject, reason: why });
      const text = "Resumed. What was approved meanwhile is checked again and runs.";
      tell({ text, tone: "ok", id: "" });
    }).catch(() => {});
  };
  return (
    <Dialog title={scope.kind === "all" ? "Resume" : `Resume ${scope.subject}`} onClose={onClose}>
      <form onSubmit={send} className="space-y-3">
        <p>Agents can change things again. What was approved during the pause runs at once.</p>
        <Field id={id} label="Reason (recorded in the audit log)">
          <textarea
            id={id}
            autoFocus
            rows={2}
            value={reason}
            onChange={({ target }) => setReason(target.value)}
            onKeyDown={(event) => {
              if (event.key === "Enter" && !event.shiftKey) send(event);
            }}
            className={FIELD}
          />
        </Field>
        <Problem error={error} />
        <DialogActions onCancel={onClose}>
          <Button type="submit" tone="primary" disabled={!ready}>
            {busy ? "Sending…" : "Resume"}
          </Button>
        </DialogActions>
      </form>
    </Dialog>
  );
}

/** What is paused, by whom, since when and why, on every page. */
export function PausedBanner({ me }: { me: Me | undefined }) {
  const { data: all } = useQuery({ ...switchQuery, enabled: me !== undefined });
  const { data: pauses = [] } = useQuery({ ...pausesQuery, enabled: me !== undefined });
  const { data: inbox } = useQuery(inboxQuery);
  const [resumed, setResumed] = useState<Scope>();
  const may = me !== undefined && mayPause(me);
  const items = inbox?.items ?? [];
  const lines = [
    ...(all?.stopped === true ? [{ ...all, scope: EVERYTHING }] : []),
    ...pauses.map(({ kind, subject, actor: by, reason, createdAt: at }) => ({
      ...{ by, reason, at },
      scope: { kind, subject },
    })),
  ];
  if (lines.length === 0) return null;
  return (
    <div role="alert" className="border-danger bg-danger-soft text-danger border-b px-3 py-1.5">
      {lines.map(({ scope, by, reason, at }) => (
        <p key={`${scope.kind} ${scope.subject}`} className="flex flex-wrap items-center gap-x-2">
          <span aria-hidden="true">⏸</span>
          <strong>
            {scope.kind === "all" ? (
              "Everything is paused"
            ) : (
              <>
                <Untrusted text={scope.subject} mono inline /> is paused
              </>
            )}
          </strong>
          <span>
            {by !== "" && (
              <>
                by <Untrusted text={by} inline />{" "}
              </>
            )}
            {at !== "" && <Ago at={at} />}: <Untrusted text={`“${reason}”`} inline />.{" "}
            {plural(items.filter((item) => isCovered(item, scope)).length, "question")} waiting;
            nothing of it will run.
          </span>
          {may && scope.kind !== "all" && (
            <button
              type="button"
              className="font-semibold underline"
              onClick={() => setResumed(scope)}
            >
              Resume
            </button>
          )}
        </p>
      ))}
      {resumed !== undefined && (
        <ResumeDialog scope={resumed} onClose={() => setResumed(undefined)} />
      )}
    </div>
  );
}
