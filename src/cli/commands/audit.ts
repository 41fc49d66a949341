import { createReadStream, readFileSync } from "node:fs";
import path from "node:path";
import type { Command } from "commander";
import { fileAnchorSink } from "../../audit/anchor-file.ts";
import { readExport } from "../../audit/export.ts";
import { type VerifyOptions, verifyStore, verifyTrail } from "../../audit/verify.ts";
import type { VerifyReport } from "../../audit/verify-report.ts";
import type { JsonRoute } from "../../http/route.ts";
import { ROUTES } from "../../http/routes.ts";
import { systemClock } from "../../util/clock.ts";
import { connect, type Shared } from "../connect.ts";
import { openExisting } from "../open-store.ts";
import { print, progress, progressEnd } from "../print.ts";
import { addVerb } from "./nouns.ts";

interface Flags extends Shared {
  readonly file?: string;
  readonly anchors?: string;
  readonly key?: readonly string[];
  readonly database?: string;
}

export function auditCommand(program: Command): void {
  const audit = program.command("audit").description("The trail: who allowed what.").exitOverride();
  addVerb(audit, "entries", "audit.entries", ROUTES["audit.entries"] as JsonRoute);
  addVerb(audit, "head", "audit.head", ROUTES["audit.head"] as JsonRoute);
  audit
    .command("export")
    .description("The whole trail as JSON Lines on standard output.")
    .action(async () => {
      const { body } = await connect(program.opts<Shared>()).exportAudit();
      for await (const piece of body ?? []) process.stdout.write(piece);
    });
  audit
    .command("verify")
    .description(
      "Checks that nobody changed the trail. Needs no server: only an export, or the store, and the anchors.",
    )
    .option("--file <export>", "an export instead of the store in --data")
    .option("--database <url>", "a PostgreSQL store")
    .option("--anchors <file>", "signed heads; without them a cut end is not noticed")
    .option("--key <pem...>", "files with the public keys of the anchors")
    .action(async (_, command: Command) => {
      const flags = command.optsWithGlobals<Flags>();
      const report = await verify(flags);
      progressEnd();
      print(flags.json === true ? report : inWords(report), flags);
      if (!report.ok) process.exitCode = 1;
    });
}

async function verify(flags: Flags): Promise<VerifyReport> {
  const options: VerifyOptions = {
    now: systemClock.now(),
    onProgress: ({ entries }) => progress(`${entries} entries`),
    ...(flags.anchors === undefined
      ? {}
      : { anchors: fileAnchorSink({ file: flags.anchors }).read() }),
    ...(flags.key === undefined
      ? {}
      : { publicKeys: flags.key.map((file) => readFileSync(file, "utf8")) }),
  };
  if (flags.file !== undefined) {
    return verifyTrail(readExport(createReadStream(flags.file)), options);
  }
  const store = await openExisting({ ...flags, data: path.resolve(flags.data) });
  try {
    return await verifyStore(store, options);
  } finally {
    await store.close();
  }
}

function inWords({ ok, entries, problems }: VerifyReport): string {
  if (ok) return `${entries} entries verified: nobody changed the record.`;
  const told = problems.slice(0, 20).map((problem) => JSON.stringify(problem));
  return [`The record was changed: ${problems.length} problems.`, ...told].join("\n");
}
