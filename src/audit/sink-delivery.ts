import type { TellProblem } from "./observer-problem.ts";
import type { AuditSink, ToolAuditEntry } from "./sink.ts";

/** Brings an entry to every sink, to each what it may see. Never throws. */
export type Deliver = (entry: ToolAuditEntry) => void;

/** Throws TypeError for a sink without a name or without `write`. */
export function sinkDelivery(sinks: readonly AuditSink[], tell: TellProblem): Deliver {
  for (const sink of sinks) checkSink(sink);
  // The mark is read now, so that what a sink is trusted with does not change under way.
  const places = sinks.map((sink) => ({ sink, isTrusted: sink.trusted === true }));
  return (entry) => {
    const whole = Object.freeze({ ...entry });
    const shared = withoutPath(entry);
    for (const { sink, isTrusted } of places) {
      // The report goes to the host's log, which is a shared place too.
      const failed = (cause: unknown) =>
        tell({ code: "sink_failed", sink: sink.name, entry: shared, cause });
      try {
        const answer: unknown = sink.write(isTrusted ? whole : shared);
        // An async function fits the type; left alone, its rejection would end the process.
        if (typeof answer === "object" && answer !== null) Promise.resolve(answer).catch(failed);
      } catch (error) {
        failed(error);
      }
    }
  };
}

function withoutPath({ storedPath: _, ...shared }: ToolAuditEntry): ToolAuditEntry {
  return Object.freeze(shared);
}

/** Sinks may come from plain JavaScript, and one that cannot be called would only show up as missing entries. */
function checkSink(sink: Partial<AuditSink> | null | undefined): void {
  const isNamed = typeof sink?.name === "string" && sink.name.trim() !== "";
  if (isNamed && typeof sink.write === "function") return;
  throw new TypeError("An audit sink needs a name and a write function.");
}
