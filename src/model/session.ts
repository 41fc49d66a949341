import { instant, key, place, prose, text } from "./field.ts";
import { type RecordOf, record } from "./record.ts";

/** Whose session it is, recorded when it is opened over HTTP and never changed. */
export const SESSIONS = record(
  "sessions",
  {
    id: key(),
    agent: text(),
    /** On whose behalf the agent acts, empty for nobody. */
    owner: prose({ limit: "none" }).packedIn("facts"),
    workingDirectory: prose({ limit: "none" }).packedIn("facts"),
    createdAt: instant(),
    ord: place(),
  },
  {
    indexes: [
      { name: "by_agent", on: ["agent", "ord"] },
      { name: "by_ord", on: ["ord"], only: "postgres" },
    ],
  },
);
export type SessionRecord = RecordOf<typeof SESSIONS>;
