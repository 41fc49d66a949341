import { headOf } from "sallyport/client";
import { bytesOf } from "../app/words.ts";
import { canonical, type Json } from "../text/canonical.ts";
import { jsonDiff } from "../text/json-diff.ts";
import { Folded } from "./openings.tsx";
import { Untrusted } from "./untrusted.tsx";

export function isUnifiedDiff(text: string): boolean {
  return /^@@ .*@@/m.test(text);
}

const MOST_LINES = 200;
const MOST_TEXT = 2_000;

/** Text that a tool wrote about what it would do; a unified diff in colours. */
export function TextView({ text, label }: { text: string; label: string }) {
  const lines = text.split("\n");
  const isDiff = isUnifiedDiff(text);
  const rest = lines.slice(MOST_LINES);
  return (
    <figure
      aria-label={label}
      className="border-line bg-page rounded-md border py-1 font-mono text-xs leading-5"
    >
      <DiffLines lines={lines.slice(0, MOST_LINES)} isDiff={isDiff} />
      {rest.length > 0 && (
        <Folded bytes={bytesOf(rest.join("\n"))}>
          <DiffLines lines={rest} isDiff={isDiff} />
        </Folded>
      )}
    </figure>
  );
}

function DiffLines({ lines, isDiff }: { lines: readonly string[]; isDiff: boolean }) {
  return lines.map((line, index) => (
    // biome-ignore lint/suspicious/noArrayIndexKey: lines have no other identity
    <div key={index} className={`min-h-5 px-2 ${isDiff ? lineTone(line) : ""}`}>
      <LongText text={line} />
    </div>
  ));
}

function LongText({ text }: { text: string }) {
  const head = headOf(text, MOST_TEXT);
  const rest = text.slice(head.length);
  return (
    <>
      <Untrusted text={head} mono />
      {rest !== "" && (
        <Folded bytes={bytesOf(rest)}>
          <Untrusted text={rest} mono />
        </Folded>
      )}
    </>
  );
}

function lineTone(line: string): string {
  if (line.startsWith("+++") || line.startsWith("---")) return "text-muted font-semibold";
  if (line.startsWith("+")) return "bg-ok-soft text-ok";
  if (line.startsWith("-")) return "bg-danger-soft text-danger";
  return line.startsWith("@@") ? "text-accent bg-accent-soft" : "";
}

/** Two values side by side, only where they differ. */
export function JsonDiff({ before, after, label }: { before: Json; after: Json; label: string }) {
  const differences = jsonDiff(before, after);
  if (differences.length === 0) return <p className="text-muted">No difference.</p>;
  return (
    <figure
      aria-label={label}
      className="border-line bg-page rounded-md border font-mono text-xs leading-5"
    >
      {differences.map((one) => (
        <div key={one.path} className="border-line border-b last:border-b-0">
          <div className="text-muted px-2 pt-1">
            <Untrusted text={one.path} mono inline />
          </div>
          <Side sign="-" value={one.before} tone="bg-danger-soft text-danger" />
          <Side sign="+" value={one.after} tone="bg-ok-soft text-ok" />
        </div>
      ))}
    </figure>
  );
}

function Side({ sign, value, tone }: { sign: string; value: Json | undefined; tone: string }) {
  if (value === undefined) return null;
  return (
    <div className={`px-2 ${tone}`}>
      {sign} <LongText text={canonical(value)} />
    </div>
  );
}
