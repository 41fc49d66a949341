import { createReadStream, readFileSync } from "node:fs";
import type { Command } from "commander";
import { fileAnchorSink } from "../../audit/anchor-file.ts";
import { readExport } from "../../audit/export.ts";
import { verifyTrail } from "../../audit/verify.ts";
import type { JsonRoute } from "../../http/route.ts";
import { ROUTES } from "../../http/routes.ts";
import { systemClock } from "../../util/clock.ts";
import { definedFields } from "../../util/defined-fields.ts";
import { connect, placeOf, type Shared, STATE } from "../connect.ts";
import { openExisting } from "../open-store.ts";
import { print, progress, progressEnd } from "../print.ts";
import { exitOf, type Verified, verifiedInWords, verifyPlace } from "../verify-place.ts";
import { addVerb } from "./nouns.ts";

interface Flags extends Shared {
  readonly file?: string;
  readonly anchors?: string;
  readonly key?: readonly string[];
  readonly database?: string;
  readonly state?: string;
  readonly epochFile?: string;
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
    .command("verify")
    .description(
      "Verify the trail against its hash chain, the anchors, the epoch file and the records. Needs no server, only the store or an export.",
    )
    .option("--file <export>", "an export instead of the store in --data")
    .option("--database <url>", "a PostgreSQL store")
    .option("--state <folder>", STATE)
    .option("--epoch-file <file>", "the epoch file; by default in the state folder")
    .option("--anchors <file>", "signed anchors; by default those in the state folder")
    .option("--key <pem...>", "files with the public keys of the anchors")
    .option("--records", "compare records with the trail, however many there are")
    .option("--no-records", "do not compare records with the trail")
    .action(async (_, command: Command) => {
      const flags = command.optsWithGlobals<Flags>();
      const verified = await verify(flags);
      progressEnd();
      const { report, records, notCompared } = verified;
      print(
        flags.json === true
          ? { ...report, records, notCompared }
          : verifiedInWords(verified).split("\n"),
        flags,
      );
      process.exitCode = exitOf(verified);
    });
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
  const place = placeOf(flags);
  const store = await openExisting(place);
  try {
    return await verifyPlace(store, place, definedFields({ anchors, records }));
  } finally {
    await store.close();
  }
}

function givenAnchors(file: string, keys: readonly string[] = []) {
  return {
    anchors: fileAnchorSink({ file }).read(),
    publicKeys: keys.map((one) => readFileSync(one, "utf8")),
  };
}
