import type { Json } from "../../text/canonical.ts";
import { isObject } from "../../text/json-diff.ts";
import { Badge, type Tone } from "../../ui/badge.tsx";
import { JsonView } from "../../ui/json-view.tsx";
import { Fact, Facts } from "../../ui/panel.tsx";
import { Untrusted } from "../../ui/untrusted.tsx";

const VERDICTS: Readonly<Record<string, readonly [Tone, string]>> = {
  A_holds: ["plain", "keeps to its plan"],
  B_wins: ["danger", "found a better way"],
  depends_on_X: ["warn", "depends on something not yet known"],
};

/** What the agent brought up against its own calls, one per call. It is the agent's word, and proves nothing. */
export function CounterChecks({ value }: { value: Json }) {
  const all = (Array.isArray(value) ? value : [value]).filter((one) => one !== null);
  return (
    <section aria-label="Counter-check" className="space-y-2">
      {all.map((one, index) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: one per call, in their order
        <CounterCheck key={index} value={one} />
      ))}
    </section>
  );
}

function CounterCheck({ value }: { value: Json }) {
  if (!isObject(value)) return <JsonView value={value} label="Counter-check" />;
  const { verdict, reason, hiddenAssumptions, failureScenarios } = value;
  const [tone, words] = VERDICTS[String(verdict)] ?? ["warn", "gives no known verdict"];
  return (
    <div className="space-y-1">
      <p>
        Its own counter-check <Badge tone={tone}>{words}</Badge>
      </p>
      <Facts>
        <Fact name="Reason">
          <Untrusted text={String(reason ?? "")} />
        </Fact>
        <Points name="Assumes" items={hiddenAssumptions} />
        <Points name="Could fail" items={failureScenarios} />
      </Facts>
    </div>
  );
}

function Points({ name, items }: { name: string; items: Json | undefined }) {
  if (!Array.isArray(items) || items.length === 0) return null;
  return (
    <Fact name={name}>
      <ul className="list-disc pl-4">
        {items.map((text) => (
          <li key={String(text)}>
            <Untrusted text={String(text)} />
          </li>
        ))}
      </ul>
    </Fact>
  );
}
