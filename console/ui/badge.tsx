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
  if (safetyClass === "read") return <Badge>Reads only</Badge>;
  if (safetyClass === "reversible") return <Badge>↩ Reversible</Badge>;
  return <Badge tone="danger">⚠ Irreversible</Badge>;
}

const STATES: Readonly<Record<string, readonly [Tone, string]>> = {
  pending_tech: ["warn", "In review"],
  pending_ml: ["warn", "Needs approval"],
  approved: ["accent", "Approved"],
  executed: ["ok", "Executed"],
  failed: ["danger", "Failed"],
  rejected_tech: ["danger", "Refused by a check"],
  rejected_ml: ["danger", "Rejected"],
  started: ["accent", "Running"],
  unknown: ["danger", "Outcome unknown"],
  success: ["ok", "Done"],
  rolled_back: ["plain", "Undone"],
  returned: ["plain", "Permit returned"],
};

export function StateBadge({ state }: { state: string }) {
  const [tone, words] = STATES[state] ?? (["plain", state] as const);
  return <Badge tone={tone}>{words}</Badge>;
}
