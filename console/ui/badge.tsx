import type { ReactNode } from "react";

const TONES = {
  plain: "border-line bg-raised text-ink",
  ok: "border-ok/40 bg-ok-soft text-ok",
  warn: "border-warn/40 bg-warn-soft text-warn",
  danger: "border-danger/40 bg-danger-soft text-danger",
  accent: "border-accent/40 bg-accent-soft text-accent",
} as const;

export type Tone = keyof typeof TONES;

export function Badge({ tone = "plain", children }: { tone?: Tone; children: ReactNode }) {
  return (
    <span
      className={`inline-block rounded border px-1.5 text-xs leading-5 font-medium whitespace-nowrap ${TONES[tone]}`}
    >
      {children}
    </span>
  );
}

/** The risk, in the words of the safety class. */
export function ClassBadge({ safetyClass }: { safetyClass: string | undefined }) {
  if (safetyClass === undefined) return null;
  if (safetyClass === "read") return <Badge>reads only</Badge>;
  if (safetyClass === "reversible") return <Badge tone="ok">can be undone</Badge>;
  return <Badge tone="danger">cannot be undone</Badge>;
}

const STATES: Readonly<Record<string, readonly [Tone, string]>> = {
  pending_tech: ["warn", "technical review"],
  pending_ml: ["warn", "waits for a person"],
  approved: ["accent", "approved"],
  executed: ["ok", "executed"],
  failed: ["danger", "failed"],
  rejected_tech: ["danger", "rejected by technical review"],
  rejected_ml: ["danger", "rejected"],
  started: ["accent", "running"],
  unknown: ["danger", "outcome unknown"],
  success: ["ok", "done"],
  rolled_back: ["plain", "undone"],
  returned: ["plain", "permit given back"],
};

export function StateBadge({ state }: { state: string }) {
  const [tone, words] = STATES[state] ?? (["plain", state] as const);
  return <Badge tone={tone}>{words}</Badge>;
}
