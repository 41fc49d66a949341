import type { ReactNode } from "react";
import { canonical, type Json } from "../text/canonical.ts";
import { type Difference, jsonDiff } from "../text/json-diff.ts";
import { LongText } from "./diff-view.tsx";
import { Untrusted } from "./untrusted.tsx";

interface Props {
  readonly title: ReactNode;
  readonly before: Json;
  readonly after: Json;
  readonly label: string;
  readonly heads?: readonly [before: string, after: string];
  readonly children?: ReactNode;
}

/** The one way to say that something is not what it was: drift, edits, other versions. */
export function Changed({ title, before, after, label, heads, children }: Props) {
  return (
    <section
      aria-label={label}
      className="border-warn bg-warn-soft space-y-2 rounded-md border px-3 py-2"
    >
      <p className="text-warn">{title}</p>
      {canonical(before) !== canonical(after) && (
        <FieldDiff
          before={before}
          after={after}
          label={label}
          {...(heads === undefined ? {} : { heads })}
        />
      )}
      {children}
    </section>
  );
}

interface DiffProps {
  readonly before: Json;
  readonly after: Json;
  readonly label: string;
  readonly heads?: readonly [before: string, after: string];
}

/** Two values as a table of the fields that differ: what it was, what it is. */
export function FieldDiff({ before, after, label, heads = ["Before", "After"] }: DiffProps) {
  const differences = jsonDiff(before, after);
  if (differences.length === 0) return <p className="text-muted">No difference.</p>;
  return (
    <div className="border-line bg-page overflow-x-auto rounded-md border">
      <table aria-label={label} className="w-full text-left text-xs">
        <thead className="text-muted">
          <tr>
            <th className="px-2 py-1 font-medium">Field</th>
            <th className="px-2 py-1 font-medium">{heads[0]}</th>
            <th className="px-2 py-1 font-medium">{heads[1]}</th>
          </tr>
        </thead>
        <tbody>
          {differences.map((one) => (
            <tr key={one.path} className="border-line border-t align-top">
              <td className="text-muted px-2 py-1">
                <Untrusted text={pathText(one.path)} mono inline />
              </td>
              <td className="bg-danger-soft text-danger px-2 py-1">
                <Value value={one.before} isTwin={isTwin(one)} />
              </td>
              <td className="bg-ok-soft text-ok px-2 py-1">
                <Value value={one.after} isTwin={isTwin(one)} />
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function pathText(path: string): string {
  return path.replace(/^\$\.?/, "") || "value";
}

/** The text "1" and the number 1 differ, although they look alike. */
function isTwin({ before, after }: Pick<Difference, "before" | "after">): boolean {
  return String(before) === String(after);
}

/** Texts and numbers as themselves; what has parts as code. */
function Value({ value, isTwin: isCode }: { value: Json | undefined; isTwin: boolean }) {
  if (value === undefined) return <span className="text-muted">nothing</span>;
  if (typeof value === "string" && !isCode) return <LongText text={value} />;
  if (value === null || typeof value === "number" || typeof value === "boolean")
    return String(value);
  return (
    <code className="font-mono">
      <LongText text={canonical(value)} />
    </code>
  );
}
