import { SallyportError } from "../model/errors.ts";
import { parseJson } from "../model/parse-json.ts";
import type { RunEvent, RunId, ToldRunEvent } from "../model/run.ts";
import type { AuditReader } from "../store/store.ts";
import type { JsonObject } from "../util/json.ts";

const PAGE = 500;
const PREFIX = "run.";

/** What the trail tells of one run, oldest first. Throws damaged_record where data was erased: a part is no whole. */
export async function* readRunEvents(audit: AuditReader, id: RunId): AsyncGenerator<ToldRunEvent> {
  for (let after = 0; ; ) {
    const page = await audit.read({ after, limit: PAGE });
    for (const { type, subject, data, at } of page) {
      if (subject !== id || !type.startsWith(PREFIX)) continue;
      if (data === null) {
        const hint = "A part of its trail was erased, so it cannot be made again.";
        throw new SallyportError("damaged_record", { id, hint });
      }
      const kind = type.slice(PREFIX.length);
      yield { event: { kind, ...(parseJson(data) as JsonObject) } as unknown as RunEvent, at };
    }
    const last = page.at(-1);
    if (last === undefined || page.length < PAGE) return;
    after = last.seq;
  }
}
