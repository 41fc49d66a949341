import type { AnswerOf } from "sallyport/client";
import type { Tone } from "../../ui/badge.tsx";

type Outcome = AnswerOf<"calls.list">["items"][number]["outcome"];

/** What became of a call, in words; each with an outcome of its own, not by colour alone. */
export const OUTCOMES: Readonly<Record<Outcome, readonly [Tone, string]>> = {
  waiting: ["warn", "Needs approval"],
  approved: ["accent", "Approved, not run"],
  ran: ["ok", "Ran"],
  ran_alone: ["plain", "Ran alone"],
  rejected: ["danger", "Rejected"],
  refused: ["danger", "Refused by a check"],
  expired: ["warn", "Expired"],
  replaced: ["plain", "Replaced"],
  failed: ["danger", "Failed"],
  unknown: ["danger", "Outcome unknown"],
  undone: ["plain", "Undone"],
};

interface Tab {
  readonly words: string;
  /** Only these; all when left out. */
  readonly outcome?: readonly Outcome[];
  readonly isMine?: true;
}

type TabName = "all" | "waiting" | "mine" | "refused" | "failed" | "undone";

export const TABS: Readonly<Record<TabName, Tab>> = {
  all: { words: "All" },
  waiting: { words: "Waiting", outcome: ["waiting", "approved"] },
  mine: { words: "Decided by me", isMine: true },
  refused: { words: "Refused by checks", outcome: ["refused"] },
  failed: { words: "Failed or unknown", outcome: ["failed", "unknown", "expired"] },
  undone: { words: "Undone", outcome: ["undone"] },
};

/** The filters as they stand in the address. */
export interface CallSearch {
  readonly tab?: TabName | undefined;
  readonly text?: string | undefined;
  readonly agent?: string | undefined;
  readonly tool?: string | undefined;
  readonly by?: string | undefined;
  readonly from?: string | undefined;
  readonly to?: string | undefined;
}

/** From an address that anybody may have written. */
export function readSearch(given: Readonly<Record<string, unknown>>): CallSearch {
  const names = ["text", "agent", "tool", "by", "from", "to"] as const;
  const texts = names.flatMap((name) => {
    const value = given[name];
    return typeof value === "string" || typeof value === "number"
      ? [[name, String(value)] as const]
      : [];
  });
  const { tab } = given;
  const known = typeof tab === "string" && tab in TABS ? { tab: tab as TabName } : {};
  return { ...Object.fromEntries(texts), ...known };
}
