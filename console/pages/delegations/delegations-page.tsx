import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useState } from "react";
import { isSallyportError } from "sallyport/client";
import { client } from "../../app/client.ts";
import { meQuery } from "../../app/queries.ts";
import { useSending } from "../../app/sending.ts";
import { Badge } from "../../ui/badge.tsx";
import { Button } from "../../ui/button.tsx";
import { Empty, Fact, Facts, PageTitle, Problem } from "../../ui/panel.tsx";
import { Until } from "../../ui/time.tsx";
import { Untrusted } from "../../ui/untrusted.tsx";
import { ReasonDialog } from "../item/reason-dialog.tsx";
import { Runs } from "../runs/run-parts.tsx";
import { DELEGATION_STATES, type Delegation, delegationsQuery } from "../runs/sub-agents.tsx";
import { RollbackDialog } from "../sessions/rollback-dialog.tsx";

/** Delegations: each root session with its tree. */
export function DelegationsPage() {
  const { data: delegations, error } = useQuery(delegationsQuery);
  const { data: me } = useQuery(meQuery);
  const [revoking, setRevoking] = useState<Delegation>();
  const [undoing, setUndoing] = useState<Delegation>();
  if (isSallyportError(error, "not_found"))
    return <Empty>Delegation is not enabled on this server.</Empty>;
  const roots = Map.groupBy(delegations ?? [], ({ rootSession }) => rootSession);
  const mayRevoke = me?.roles.includes("operator") === true;
  const acts = mayRevoke ? { onRevoke: setRevoking, onUndo: setUndoing } : undefined;
  return (
    <div className="mx-auto max-w-5xl space-y-3 p-3">
      <PageTitle title="Delegations" />
      <Problem error={error} />
      <Runs />
      {delegations?.length === 0 && <Empty>No agent has delegated anything yet.</Empty>}
      {[...roots].toReversed().map(([root, below]) => (
        <section key={root} className="border-line bg-panel rounded-lg border p-3">
          <h2 className="mb-2">
            <Untrusted text={below[0]?.agents.at(-1) ?? ""} inline />{" "}
            <Link to="/sessions/$id" params={{ id: root }} className="font-normal">
              session
            </Link>
          </h2>
          <Branch parent={root} all={below} acts={acts} />
        </section>
      ))}
      {revoking !== undefined && (
        <Revoke delegation={revoking} onClose={() => setRevoking(undefined)} />
      )}
      {undoing !== undefined && (
        <RollbackDialog sessionId={undoing.id} onClose={() => setUndoing(undefined)} />
      )}
    </div>
  );
}

interface BranchProps {
  readonly parent: string;
  readonly all: readonly Delegation[];
  readonly acts: Acts | undefined;
}

/** What an operator does with one of them. */
interface Acts {
  readonly onRevoke: (delegation: Delegation) => void;
  readonly onUndo: (delegation: Delegation) => void;
}

function Branch({ parent, all: known, acts }: BranchProps) {
  const children = known.filter(({ parentSession }) => parentSession === parent);
  if (children.length === 0) return null;
  return (
    <ul className="border-line ml-1 space-y-2 border-l-2 pl-3">
      {children.map((one) => (
        <li key={one.id} className="space-y-2">
          <Hand delegation={one} acts={acts} />
          <Branch parent={one.id} all={known} acts={acts} />
        </li>
      ))}
    </ul>
  );
}

function Hand({ delegation, acts }: { delegation: Delegation; acts: Acts | undefined }) {
  const { agents, state, task, scope, promise, promiseMet, output, reason, id } = delegation;
  return (
    <div>
      <div className="flex flex-wrap items-center gap-2">
        <Untrusted text={agents[0] ?? ""} inline className="font-semibold" />
        <Badge tone={DELEGATION_STATES[state][0]}>{DELEGATION_STATES[state][1]}</Badge>
        <Badge>{scope.role}</Badge>
        {state === "active" && <Until at={scope.expiresAt} calm />}
        {promiseMet !== undefined && (
          <Badge tone={promiseMet ? "ok" : "danger"}>
            promise {promiseMet ? "kept" : "not kept"}
          </Badge>
        )}
        <Link to="/sessions/$id" params={{ id }} className="text-xs">
          session
        </Link>
        {state === "active" && acts !== undefined && (
          <Button tone="danger" className="ml-auto" onClick={() => acts.onRevoke(delegation)}>
            Revoke
          </Button>
        )}
        {state !== "active" && acts !== undefined && (
          <Button className="ml-auto" onClick={() => acts.onUndo(delegation)}>
            Undo its work
          </Button>
        )}
      </div>
      <p>
        <Untrusted text={task} />
      </p>
      <details className="text-xs">
        <summary className="text-muted">Scope and promise</summary>
        <Facts>
          <Fact name="Writes">{scope.writePermission}</Fact>
          <Fact name="Tools">
            <Untrusted text={scope.tools.join(", ")} mono inline />
          </Fact>
          {scope.planFiles.length > 0 && (
            <Fact name="Files">
              <Untrusted text={scope.planFiles.join("\n")} mono />
            </Fact>
          )}
          <Fact name="Calls left">{scope.calls}</Fact>
          <Fact name="May delegate">
            {scope.depth === 0 ? "no further" : `${scope.depth} more levels`}
          </Fact>
          <Fact name="Promise">
            <Untrusted text={promise.statement} />
          </Fact>
          {output !== "" && (
            <Fact name="Reported">
              <Untrusted text={output} />
            </Fact>
          )}
          {reason !== "" && (
            <Fact name="Why">
              <Untrusted text={reason} />
            </Fact>
          )}
        </Facts>
      </details>
    </div>
  );
}

function Revoke({ delegation, onClose }: { delegation: Delegation; onClose: () => void }) {
  const { busy, error, run } = useSending(["delegations"], onClose);
  const revoke = (reason: string) =>
    run(() => client.delegations.revoke({ id: delegation.id, reason }));
  return (
    <ReasonDialog
      title="Stop this sub-agent and everything below it"
      label="Why?"
      submit="Revoke"
      tone="danger"
      required
      busy={busy}
      error={error}
      onSubmit={revoke}
      onClose={onClose}
    />
  );
}
