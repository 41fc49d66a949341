import { client, type Me } from "../../app/client.ts";
import { useSending } from "../../app/sending.ts";
import { plural } from "../../app/words.ts";
import type { Json } from "../../text/canonical.ts";
import { testWords } from "../../text/pattern-words.ts";
import { Badge, type Tone } from "../../ui/badge.tsx";
import { Button } from "../../ui/button.tsx";
import { Fact, Facts, Problem } from "../../ui/panel.tsx";
import { Ago, Until } from "../../ui/time.tsx";
import { Untrusted } from "../../ui/untrusted.tsx";
import type { Rule } from "./queries.ts";

const STATES: Readonly<Record<Rule["state"], readonly [Tone, string]>> = {
  proposed: ["warn", "waits for an admin"],
  active: ["ok", "active"],
  expired: ["plain", "expired"],
  revoked: ["danger", "revoked"],
};

interface Props {
  readonly rule: Rule;
  readonly me: Me | undefined;
  readonly onRevoke: (() => void) | undefined;
}

/** One rule: who allowed what, until when, how often it was used. */
export function RuleRow({ rule, me, onRevoke }: Props) {
  const { id, tool, state, pattern, workingDirectory, reason, expiresAt, uses } = rule;
  const [tone, words] = STATES[state];
  const isLive = state === "proposed" || state === "active";
  return (
    <li className="space-y-1.5 px-3 py-2.5" data-rule={id}>
      <div className="flex flex-wrap items-center gap-2">
        <Untrusted text={tool} mono inline className="font-semibold" />
        <Badge tone={tone}>{words}</Badge>
        {isLive && <Until at={expiresAt} calm />}
        <span className="text-muted">
          {uses === 0 ? "never used" : `used ${plural(uses, "time")}`}
        </span>
        {isLive && onRevoke !== undefined && (
          <Button tone="danger" className="ml-auto" onClick={onRevoke}>
            Revoke
          </Button>
        )}
      </div>
      <Pattern pattern={pattern} />
      <Facts>
        {workingDirectory !== "" && (
          <Fact name="Folder">
            <Untrusted text={workingDirectory} mono inline />
          </Fact>
        )}
        <Fact name="Why">
          <Untrusted text={reason} />
        </Fact>
        <Fact name="People">
          <By rule={rule} />
        </Fact>
        {state === "revoked" && (
          <Fact name="Revoked">
            by <Untrusted text={rule.endedBy} inline />{" "}
            {rule.endReason !== "" && <Untrusted text={`“${rule.endReason}”`} />}
          </Fact>
        )}
      </Facts>
      {state === "proposed" && <Confirm rule={rule} me={me} />}
    </li>
  );
}

function Pattern({ pattern }: Pick<Rule, "pattern">) {
  const tests = Object.entries(pattern);
  if (tests.length === 0) return <p>Only with empty input.</p>;
  return (
    <ul className="border-line bg-page rounded-md border px-2 py-1 font-mono text-xs leading-5">
      {tests.map(([name, test]) => (
        <li key={name}>
          <Untrusted text={name} mono inline className="font-semibold" />{" "}
          <code>
            <Untrusted text={testWords(test as { readonly [key: string]: Json })} mono inline />
          </code>
        </li>
      ))}
      <li className="text-muted font-sans">and nothing else</li>
    </ul>
  );
}

function By({ rule }: { rule: Rule }) {
  return (
    <>
      proposed by <Untrusted text={rule.madeBy} inline /> <Ago at={rule.createdAt} />
      {rule.confirmedBy !== "" && (
        <>
          , confirmed by <Untrusted text={rule.confirmedBy} inline />
        </>
      )}
    </>
  );
}

function Confirm({ rule, me }: { rule: Rule; me: Me | undefined }) {
  const sending = useSending(["rules"], () => {});
  if (me === undefined) return null;
  if (!me.roles.includes("admin")) {
    return <p className="text-warn">Not active until an admin confirms it.</p>;
  }
  if (me.subject === rule.madeBy) {
    return <p className="text-warn">You proposed this rule: another admin must confirm it.</p>;
  }
  return (
    <div>
      <Problem error={sending.error} />
      <Button
        tone="primary"
        disabled={sending.busy}
        onClick={() => sending.run(() => client.standingRules.confirm({ id: rule.id }))}
      >
        {sending.busy ? "Sending…" : "Confirm: no one is asked from now on"}
      </Button>
    </div>
  );
}
