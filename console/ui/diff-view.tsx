import { headOf } from "sallyport/client";
import { bytesOf } from "../app/words.ts";
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

export function LongText({ text }: { text: string }) {
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
