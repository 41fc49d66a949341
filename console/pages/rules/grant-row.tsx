import { Link } from "@tanstack/react-router";
import { Badge, type Tone } from "../../ui/badge.tsx";
import { Button } from "../../ui/button.tsx";
import { Fact, Facts } from "../../ui/panel.tsx";
import { Until } from "../../ui/time.tsx";
import { Untrusted } from "../../ui/untrusted.tsx";
import type { Grant } from "./queries.ts";

const STATES: Readonly<Record<Grant["state"], readonly [Tone, string]>> = {
  live: ["warn", "active"],
  expired: ["plain", "expired"],
  revoked: ["danger", "revoked"],
};

interface Props {
  readonly grant: Grant;
  readonly onRevoke: (() => void) | undefined;
}

/** One finding that does not count for now. */
export function GrantRow({ grant, onRevoke }: Props) {
  const { id, finding, state, expiresAt, sessionId, by, reason } = grant;
  const [tone, words] = STATES[state];
  return (
    <li className="space-y-1.5 px-3 py-2.5" data-grant={id}>
      <div className="flex flex-wrap items-center gap-2">
        <span className="text-muted font-mono text-xs">{id}</span>
        <Untrusted text={finding.policy} inline className="font-semibold" />
        <Badge tone={tone}>{words}</Badge>
        {state === "live" &&
          (expiresAt === null ? <span>until revoked</span> : <Until at={expiresAt} calm />)}
        {state === "live" && onRevoke !== undefined && (
          <Button tone="danger" className="ml-auto" onClick={onRevoke}>
            Revoke
          </Button>
        )}
      </div>
      <p>
        <Untrusted text={finding.message} />
      </p>
      <Facts>
        <Fact name="Where">
          {sessionId === "" ? (
            "everywhere"
          ) : (
            <Link to="/sessions/$id" params={{ id: sessionId }}>
              <Untrusted text={sessionId} mono inline />
            </Link>
          )}
          , {scopeWords(grant.scope)}
        </Fact>
        <Fact name="By">
          <Untrusted text={by} inline /> {reason !== "" && <Untrusted text={`“${reason}”`} />}
        </Fact>
      </Facts>
    </li>
  );
}

function scopeWords(scope: Grant["scope"]): string {
  if (scope.kind === "finding") return "this finding alone";
  if (scope.kind === "point") return `every finding of this policy at ${scope.point}`;
  return `every finding of this policy in ${scope.phase}`;
}
