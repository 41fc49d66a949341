import { amountText } from "../app/locale.ts";
import type { Json } from "../text/canonical.ts";
import { isObject } from "../text/json-diff.ts";
import { FieldDiff } from "./changed.tsx";
import { isUnifiedDiff, TextView } from "./diff-view.tsx";
import { JsonView } from "./json-view.tsx";
import { Facts } from "./panel.tsx";
import { Untrusted } from "./untrusted.tsx";

export interface Presented {
  readonly title?: string;
  readonly problem?: string;
  readonly fields?: readonly {
    readonly label: string;
    readonly value: string;
    readonly before?: string;
    readonly format?: string;
  }[];
  readonly amount?: { readonly value: number; readonly unit: string };
}

export function presentedIn(dryRun: Json | undefined): Presented {
  const found = isObject(dryRun) ? dryRun["presented"] : undefined;
  return isObject(found) ? (found as Presented) : {};
}

/** The sentence about a call: the tool's own, otherwise the summary of its dry run. */
export function sentenceOf(dryRun: Json | undefined): string {
  const { title } = presentedIn(dryRun);
  if (title !== undefined) return title;
  return isObject(dryRun) && typeof dryRun["summary"] === "string" ? dryRun["summary"] : "";
}

/** What would change, once: the tool's fields, its record before and after, or its own diff. All of it is the tool's word. */
export function ChangeView({ dryRun }: { dryRun: Json | undefined }) {
  const presented = presentedIn(dryRun);
  const isBlind = !isObject(dryRun) || "unavailable" in dryRun;
  const why = isObject(dryRun) ? String(dryRun["unavailable"]) : "there is no preview";
  const { summary, preview, impact } = isObject(dryRun) ? dryRun : {};
  const sentence = presented.title === undefined ? "" : String(summary ?? "");
  const text = typeof preview === "string" && preview !== summary ? preview : "";
  return (
    <div className="space-y-2">
      {presented.problem !== undefined && (
        <p className="text-warn">
          <Untrusted text={presented.problem} />
        </p>
      )}
      {isBlind && (
        <p className="border-warn bg-warn-soft text-warn rounded-md border px-2 py-1">
          <strong>Effect unknown:</strong> <Untrusted text={why} inline />. What would change cannot
          be shown before it runs.
        </p>
      )}
      {sentence !== "" && sentence !== presented.title && (
        <p>
          <Untrusted text={sentence} />
        </p>
      )}
      {presented.amount !== undefined && <Amount amount={presented.amount} />}
      {presented.fields !== undefined && <Fields fields={presented.fields} />}
      {!isBlind && <Effect text={text} impact={impact} />}
    </div>
  );
}

/** How much, in the reader's own way of writing money. */
export function Amount({ amount }: { amount: NonNullable<Presented["amount"]> }) {
  return (
    <p className="text-lg font-semibold tabular-nums" data-amount="">
      <Untrusted text={amountText(amount)} inline />
    </p>
  );
}

function Fields({ fields }: { fields: NonNullable<Presented["fields"]> }) {
  return (
    <Facts>
      {fields.map(({ label, value, before, format }) => (
        <div key={label} className="contents">
          <dt className="text-muted min-w-0">
            <Untrusted text={label} inline />
          </dt>
          <dd className={`min-w-0 ${format === "money" ? "font-semibold tabular-nums" : ""}`}>
            {before !== undefined && (
              <>
                <del className="text-muted">
                  <Untrusted text={before} mono={format === "code"} inline />
                </del>
                {" → "}
              </>
            )}
            <Untrusted text={value} mono={format === "code"} inline />
          </dd>
        </div>
      ))}
    </Facts>
  );
}

/** A diff that the tool wrote is drawn as such; otherwise the record before and after, and what else it says. */
function Effect({ text, impact }: { text: string; impact: Json | undefined }) {
  const facts = isObject(impact) ? impact : {};
  const { before, after, ...rest } = facts;
  const hasDiff = before !== undefined && after !== undefined;
  const other = Object.entries(hasDiff ? rest : facts);
  const isFlat = other.every(([, value]) => typeof value !== "object" || value === null);
  return (
    <>
      {text !== "" && (isUnifiedDiff(text) || !hasDiff) && <TextView text={text} label="Change" />}
      {hasDiff && !isUnifiedDiff(text) && (
        <FieldDiff before={before} after={after} label="Before and after" />
      )}
      {other.length > 0 && isFlat && (
        <Facts>
          {other.map(([name, value]) => (
            <div key={name} className="contents">
              <dt className="text-muted min-w-0">
                <Untrusted text={name} inline />
              </dt>
              <dd className="min-w-0">
                <Untrusted text={String(value)} inline />
              </dd>
            </div>
          ))}
        </Facts>
      )}
      {other.length > 0 && !isFlat && (
        <JsonView value={Object.fromEntries(other)} label="Other effects" />
      )}
    </>
  );
}
