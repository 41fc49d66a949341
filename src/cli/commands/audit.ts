import { createReadStream, readFileSync } from "node:fs";
import type { Command } from "commander";
import { fileAnchorSink } from "../../audit/anchor.ts";
import { checkProof, type InclusionProof, proveEntry } from "../../audit/proof.ts";
import { readExport } from "../../audit/trail.ts";
import { type VerifyReport, verifyStore, verifyTrail } from "../../audit/verify.ts";
import { compareRecords } from "../../crashkit/compare-records.ts";
import { collectEvidence } from "../../crashkit/evidence.ts";
import { checkInvariants, OF_THE_STORE } from "../../crashkit/invariants/table.ts";
import type { JsonRoute } from "../../http/route.ts";
import { ROUTES } from "../../http/routes.ts";
import { isSallyportError, SallyportError } from "../../model/errors.ts";
import type { Store } from "../../store/store.ts";
import { systemClock } from "../../util/clock.ts";
import { definedFields } from "../../util/defined-fields.ts";
import { errorText } from "../../util/error-text.ts";
import { connect, type Shared } from "../connect.ts";
import { inStore, OPTION, type StoreFlags, storePlaceOf, withFlags } from "../open-store.ts";
import { EXIT, print, progress, progressEnd } from "../render.ts";
import {
  type Anchoring,
  anchorsIn,
  rememberedOf,
  type StorePlace,
  stateOf,
} from "../state-folder.ts";
import { addVerb } from "./nouns.ts";

interface Flags extends StoreFlags {
  readonly file?: string;
  readonly anchors?: string;
  readonly key?: readonly string[];
  readonly records?: boolean;
}

export function auditCommand(program: Command): void {
  const audit = program
    .command("audit")
    .description("Read, export and verify the audit trail.")
    .exitOverride();
  addVerb(audit, "entries", "audit.entries", ROUTES["audit.entries"] as JsonRoute);
  addVerb(audit, "head", "audit.head", ROUTES["audit.head"] as JsonRoute);
  audit
    .command("export")
    .description("Print the whole trail as JSON Lines.")
    .action(async () => {
      const { body } = await connect(program.opts<Shared>()).exportAudit();
      for await (const piece of body ?? []) process.stdout.write(piece);
    });
  audit
    .command("proof")
    .argument("[number]", "of the entry")
    .description(
      "Print a proof that one entry is part of the trail, or check one. Neither shows other entries; checking needs no store.",
    )
    .option("--tenant <name>", "whose trail, when the store has several")
    .option("--check <file>", "check this proof instead")
    .option("--key <pem...>", "files with the public keys of the anchors")
    .option(...OPTION.database)
    .option(...OPTION.state)
    .action(withFlags<ProofFlags>(proof));
  audit
    .command("verify")
    .description(
      "Verify the trail against its hash chain, the anchors, the epoch file and the records. Needs no server, only the store or an export.",
    )
    .option("--file <export>", "an export instead of the store in --data")
    .option(...OPTION.database)
    .option(...OPTION.state)
    .option(...OPTION.epochFile)
    .option("--anchors <file>", "signed anchors; by default those in the state folder")
    .option("--key <pem...>", "files with the public keys of the anchors")
    .option(...OPTION.records)
    .option(...OPTION.noRecords)
    .action(
      withFlags<Flags>(async (flags) => {
        const verified = await verify(flags);
        progressEnd();
        const { report, records, notCompared } = verified;
        const inWords = verifiedInWords(verified).split("\n");
        print({ ...report, records, notCompared }, flags, inWords);
        process.exitCode = exitOf(verified);
      }),
    );
}

interface ProofFlags extends StoreFlags {
  readonly check?: string;
  readonly tenant?: string;
  readonly key?: readonly string[];
}

/** Makes a proof for one entry, or checks one that was made elsewhere. */
async function proof(flags: ProofFlags, seq: string | undefined): Promise<void> {
  if (flags.check !== undefined) {
    const given = readProof(flags.check);
    const checked = checkProof(
      given,
      flags.key?.map((one) => readFileSync(one, "utf8")),
    );
    print(checked, flags, [checked.message]);
    process.exitCode = !checked.ok
      ? EXIT.tampered
      : checked.isAnchored
        ? EXIT.done
        : EXIT.unanchored;
    return;
  }
  const place = storePlaceOf(flags);
  const made = await inStore(place, async (store) => {
    const tenants = (await store.heads()).map(({ tenant }) => tenant);
    const [only] = flags.tenant === undefined && tenants.length === 1 ? tenants : [flags.tenant];
    if (only === undefined || !/^[1-9]\d*$/.test(seq ?? "")) {
      const hint =
        "Give the number of an entry, and with --tenant whose it is when the store has several.";
      throw new SallyportError("invalid_input", { what: "proof", hint });
    }
    const anchors = [];
    for await (const anchor of anchorsIn(stateOf(place))?.anchors ?? []) anchors.push(anchor);
    return proveEntry(store.tenant(only).audit, Number(seq), anchors);
  });
  process.stdout.write(`${JSON.stringify(made)}\n`);
}

/** Throws invalid_input for a file that is not there or holds something else. */
function readProof(file: string): InclusionProof {
  try {
    return JSON.parse(readFileSync(file, "utf8")) as InclusionProof;
  } catch (cause) {
    const hint = `${file} is not a proof: ${errorText(cause)}`;
    throw new SallyportError("invalid_input", { what: "--check", hint }, cause);
  }
}

async function verify(flags: Flags): Promise<Verified> {
  const { anchors: file, key, records } = flags;
  const anchors = file === undefined ? undefined : givenAnchors(file, key);
  if (flags.file !== undefined) {
    const report = await verifyTrail(readExport(createReadStream(flags.file)), {
      now: systemClock.now(),
      onProgress: ({ entries }) => progress(`${entries} entries`),
      ...anchors,
    });
    return { report, records: undefined, notCompared: "" };
  }
  const place = storePlaceOf(flags);
  const terms = definedFields({ anchors, records });
  return inStore(place, (store) => verifyPlace(store, place, terms));
}

function givenAnchors(file: string, keys: readonly string[] = []) {
  return {
    anchors: fileAnchorSink({ file }).read(),
    publicKeys: keys.map((one) => readFileSync(one, "utf8")),
  };
}

export interface Verified {
  readonly report: VerifyReport;
  /** Records that differ from the trail; undefined when they were not compared. */
  readonly records: readonly string[] | undefined;
  /** Why they were not; empty when they were. */
  readonly notCompared: string;
}

export interface VerifyTerms {
  /** Instead of those in the state folder. */
  readonly anchors?: Anchoring["audit"];
  /** Compare records always or never; by default up to `MOST_ENTRIES`. */
  readonly records?: boolean;
  /** `itself`: a copy that was just put in place, about which anchors and epoch file know nothing. */
  readonly against?: "state" | "itself";
}

/** Every tenant's records are held in memory while they are compared. */
const MOST_ENTRIES = 20_000;
/** A server anchors every ten seconds; without an anchor for longer than this, no server anchors the store. */
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

/** Records that differ from the trail, tenant by tenant. */
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
