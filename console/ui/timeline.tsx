import type { Entry } from "../app/client.ts";
import { wordsOf } from "../app/trail.ts";
import { Moment } from "./time.tsx";
import { Untrusted } from "./untrusted.tsx";

/** Says what a long trail leaves out: always its oldest part. */
export function OlderMissing({ entries }: { entries: readonly Entry[] }) {
  const [first] = entries;
  return (
    <p className="text-warn mb-2">
      The trail is long: entries{" "}
      {first === undefined ? (
        "older than the part that was read"
      ) : (
        <>
          before <Moment at={first.at} />
        </>
      )}{" "}
      are not shown here. They are under Audit.
    </p>
  );
}

export function Timeline({ entries }: { entries: readonly Entry[] }) {
  return (
    <ol className="border-line ml-1 space-y-1.5 border-l-2 pl-3">
      {entries.map((entry) => {
        const { words, detail } = wordsOf(entry);
        return (
          <li key={entry.seq} className="relative">
            <span
              aria-hidden="true"
              className="border-strong bg-panel absolute top-1.5 -left-[1.15rem] size-2 rounded-full border-2"
            />
            <span className="text-muted text-xs">
              <Moment at={entry.at} />
            </span>{" "}
            <span className="font-medium">{words}</span>{" "}
            <span className="text-muted text-xs">
              <Untrusted text={entry.actor} inline /> · #{entry.seq}
            </span>
            {detail !== "" && (
              <div className="text-muted">
                <Untrusted text={detail} />
              </div>
            )}
          </li>
        );
      })}
    </ol>
  );
}
