import { type VerifyReport, verifyStore } from "../audit/verify.ts";
import { compareRecords } from "../crashkit/compare-records.ts";
import { collectEvidence } from "../crashkit/evidence.ts";
import { checkInvariants, OF_THE_STORE } from "../crashkit/invariants/table.ts";
import { isSallyportError } from "../model/errors.ts";
import type { Store } from "../store/store.ts";
import { systemClock } from "../util/clock.ts";
import { definedFields } from "../util/defined-fields.ts";
import { errorText } from "../util/error-text.ts";
import { type Anchoring, anchorsIn } from "./anchoring.ts";
import { EXIT, progress, progressEnd } from "./print.ts";
import { rememberedOf, type StorePlace, stateOf } from "./state-folder.ts";

export interface Verified {
  readonly report: VerifyReport;
  /** Records that are not as the trail tells; undefined when they were not compared. */
  readonly records: readonly string[] | undefined;
  /** Why they were not; empty when they were. */
  readonly notCompared: string;
}

export interface VerifyTerms {
  /** Instead of those in the state folder. */
  readonly anchors?: Anchoring["audit"];
  /** Compare records whatever it costs, or never; left out: up to so many entries. */
  readonly records?: boolean;
  /** `itself`: a copy that was just put in place, about which anchors and epoch file know nothing. */
  readonly against?: "state" | "itself";
}

/** Every tenant's records are held in memory while they are compared. */
const MOST_ENTRIES = 20_000;
/** A server anchors every ten seconds; what has no anchor for longer than this has nobody who anchors it. */
const FRESH_MS = 60_000;

/** The trail of a store against its own chain, the anchors, the epoch file and the records. */
export async function verifyPlace(
  store: Store,
  place: StorePlace,
  { anchors, records, against = "state" }: VerifyTerms,
): Promise<Verified> {
  // Before the heads: a server that writes meanwhile must not make the store look older than its epoch file.
  const remembered = against === "state" ? rememberedOf(place) : undefined;
  const found = anchors ?? (against === "state" ? anchorsIn(stateOf(place)) : undefined);
  const report = await verifyStore(store, {
    ...found,
    ...definedFields({ remembered }),
    now: systemClock.now(),
    onProgress: ({ entries }) => progress(`${entries} entries`),
  });
  progressEnd();
  const skipped = whyNot(report, records);
  if (skipped !== "") return { report, records: undefined, notCompared: skipped };
  try {
    return { report, records: await wrongRecords(store), notCompared: "" };
  } catch (error) {
    // Others write faster than it can be read; asked for explicitly, that is a failure.
    if (records === true) throw error;
    return { report, records: undefined, notCompared: errorText(error) };
  }
}

function whyNot({ ok, entries }: VerifyReport, wanted: boolean | undefined): string {
  if (wanted === true) return "";
  if (wanted === false) return "--no-records";
  if (!ok) return "the trail has problems";
  return entries > MOST_ENTRIES ? `more than ${MOST_ENTRIES} entries; use --records` : "";
}

/** What is stored and not as the trail tells, tenant by tenant. */
async function wrongRecords(store: Store): Promise<readonly string[]> {
  const wrong: string[] = [];
  for (const { tenant } of await store.heads()) {
    try {
      const evidence = await collectEvidence(store, tenant, NOTHING_OUTSIDE);
      const broken = checkInvariants(evidence, OF_THE_STORE).map(({ problem }) => problem);
      wrong.push(...[...broken, ...compareRecords(evidence)].map((text) => `${tenant}: ${text}`));
    } catch (error) {
      if (!isSallyportError(error, "damaged_record")) throw error;
      wrong.push(`${tenant}: ${errorText(error)}`);
    }
  }
  return wrong;
}

const NOTHING_OUTSIDE = { ledger: [], told: [], isAtRest: false } as const;

export function exitOf({ report, records = [] }: Pick<Verified, "report" | "records">): number {
  if (!report.ok || records.length > 0) return EXIT.tampered;
  return isCovered(report) ? EXIT.done : EXIT.unanchored;
}

function isCovered({ anchors, blindWindow }: VerifyReport): boolean {
  if (anchors === 0) return false;
  return blindWindow.entries === 0 || (blindWindow.sinceMs ?? Number.POSITIVE_INFINITY) <= FRESH_MS;
}

/** What was found, and what could not be checked. */
export function verifiedInWords({ report, records, notCompared }: Verified): string {
  const { ok, problems, problemCount } = report;
  const lines = ok
    ? [`Verified ${report.entries} entries. ${coverage(report)}`]
    : [
        `The trail was changed or cut: ${problemCount} problems.`,
        ...problems.slice(0, 20).map((problem) => JSON.stringify(problem)),
      ];
  if (records === undefined) {
    if (notCompared !== "") lines.push(`Records were not compared with the trail: ${notCompared}.`);
  } else if (records.length === 0) lines.push("The records agree with the trail.");
  else lines.push(`${records.length} records do not agree with the trail:`, ...records);
  return lines.join("\n");
}

function coverage({ anchors, lastAnchorAt = "", blindWindow }: VerifyReport): string {
  if (anchors === 0) {
    return "No entry between the first and the last was changed; without an anchor it cannot be known whether entries are missing at the end.";
  }
  const age = ago(systemClock.now() - Date.parse(lastAnchorAt));
  return blindWindow.entries === 0
    ? `The chain is intact; the tail is covered by an anchor from ${age} ago.`
    : `The chain is intact; the last anchor is from ${age} ago, and the newest ${blindWindow.entries} entries are not covered by it yet.`;
}

export function ago(ms: number): string {
  const seconds = Math.max(0, Math.round(ms / 1000));
  if (seconds < 120) return `${seconds} s`;
  if (seconds < 7_200) return `${Math.round(seconds / 60)} min`;
  return seconds < 172_800
    ? `${Math.round(seconds / 3_600)} h`
    : `${Math.round(seconds / 86_400)} d`;
}
