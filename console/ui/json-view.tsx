import { Fragment, type ReactNode, useState } from "react";
import { headOf } from "sallyport/client";
import { bytesOf } from "../app/words.ts";
import { ascii, canonical, type Json } from "../text/canonical.ts";
import { Folded } from "./openings.tsx";
import { Untrusted } from "./untrusted.tsx";

// A value as what it is: the canonical form, one member a line. Strings are drawn in boxes with their quotes and backslashes
// escaped, so that no string can draw a member that is not there.

const MOST_TEXT = 1_500;
const MOST_MEMBERS = 60;

export function JsonView({ value, label }: { value: Json; label: string }) {
  const [raw, setRaw] = useState(false);
  return (
    <div className="border-line bg-page relative rounded-md border">
      <div className="absolute top-1 right-1 flex gap-1">
        <button
          type="button"
          aria-pressed={raw}
          onClick={() => setRaw(!raw)}
          className="border-line bg-panel text-muted rounded border px-1.5 text-xs"
          title="The exact bytes, with non-ASCII characters escaped"
        >
          raw
        </button>
      </div>
      <figure
        aria-label={label}
        className="p-2 pr-12 font-mono text-xs leading-5"
        data-json={raw ? "raw" : "tree"}
      >
        {raw ? <RawText text={ascii(canonical(value))} /> : <Value value={value} />}
      </figure>
    </div>
  );
}

function RawText({ text }: { text: string }) {
  return (
    <span className="break-all whitespace-pre-wrap">
      {text.slice(0, 4 * MOST_TEXT)}
      {text.length > 4 * MOST_TEXT && (
        <Folded bytes={text.length - 4 * MOST_TEXT}>{text.slice(4 * MOST_TEXT)}</Folded>
      )}
    </span>
  );
}

function Value({ value }: { value: Json }): ReactNode {
  if (typeof value === "string") return <Text text={value} />;
  if (typeof value !== "object" || value === null) {
    return <span className="text-accent">{JSON.stringify(value)}</span>;
  }
  if (Array.isArray(value)) {
    return <Members open="[" close="]" members={value.map((member) => [undefined, member])} />;
  }
  const sorted = Object.entries(value as Record<string, Json>).sort(([a], [b]) => (a < b ? -1 : 1));
  return <Members open="{" close="}" members={sorted} />;
}

interface MembersProps {
  readonly open: string;
  readonly close: string;
  readonly members: readonly (readonly [string | undefined, Json])[];
}

function Members({ open, close, members }: MembersProps) {
  if (members.length === 0) return `${open}${close}`;
  const rest = members.slice(MOST_MEMBERS);
  return (
    <>
      {open}
      <div className="border-line ml-1 border-l pl-3">
        <Lines members={members.slice(0, MOST_MEMBERS)} />
        {rest.length > 0 && (
          <Folded bytes={bytesOf(canonical(rest.map(([, member]) => member)))}>
            <Lines members={rest} />
          </Folded>
        )}
      </div>
      {close}
    </>
  );
}

function Lines({ members }: Pick<MembersProps, "members">) {
  return members.map(([key, member], index) => (
    // biome-ignore lint/suspicious/noArrayIndexKey: members of a value have no other identity
    <Fragment key={index}>
      <div>
        {key !== undefined && (
          <>
            <span className="font-semibold">
              <Untrusted text={escaped(key)} mono inline />
            </span>
            {": "}
          </>
        )}
        <Value value={member} />
      </div>
    </Fragment>
  ));
}

function Text({ text }: { text: string }) {
  const whole = escaped(text);
  const head = headOf(whole, MOST_TEXT);
  const rest = whole.slice(head.length);
  return (
    <span className="border-line bg-panel inline-block max-w-full rounded-sm border px-1 align-top">
      <span className="text-muted">"</span>
      <Untrusted text={head} mono />
      {rest !== "" && (
        <Folded bytes={bytesOf(rest)}>
          <Untrusted text={rest} mono />
        </Folded>
      )}
      <span className="text-muted">"</span>
    </span>
  );
}

/** Quotes and backslashes as JSON writes them; every other deceptive character becomes a mark. */
function escaped(text: string): string {
  return text.replace(/["\\]/g, (sign) => `\\${sign}`);
}
