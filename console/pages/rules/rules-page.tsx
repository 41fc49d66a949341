import { useQuery } from "@tanstack/react-query";
import { type ReactNode, useState } from "react";
import { client, type Me } from "../../app/client.ts";
import { meQuery } from "../../app/queries.ts";
import { useSending } from "../../app/sending.ts";
import { Button } from "../../ui/button.tsx";
import { Empty, PageTitle, Problem } from "../../ui/panel.tsx";
import { ReasonDialog } from "../item/reason-dialog.tsx";
import { GiveDialog } from "./give-dialog.tsx";
import { GrantRow } from "./grant-row.tsx";
import { ProposeDialog } from "./propose-dialog.tsx";
import { type Grant, grantsQuery, type Rule, rulesQuery } from "./queries.ts";
import { RuleRow } from "./rule-row.tsx";

type Asking =
  | { readonly what: "propose" | "give" }
  | { readonly what: "endRule"; readonly rule: Rule }
  | { readonly what: "endGrant"; readonly grant: Grant };

/** Standing rules, and findings overridden for a limited time. */
export function RulesPage() {
  const { data: me } = useQuery(meQuery);
  const { data: rules, error } = useQuery(rulesQuery);
  const { data: grants, error: problem } = useQuery(grantsQuery);
  const [asking, setAsking] = useState<Asking>();
  const close = () => setAsking(undefined);
  return (
    <div className="mx-auto max-w-5xl space-y-3 p-3">
      <PageTitle title="Rules">
        <Button
          tone="primary"
          disabled={!has(me, "operator")}
          title={has(me, "operator") ? "" : "Operators propose, admins confirm"}
          onClick={() => setAsking({ what: "propose" })}
        >
          Propose a rule
        </Button>
      </PageTitle>
      <p className="text-muted">
        A standing rule is an approval in advance: this tool with inputs like this, until it
        expires. One person proposes it, another admin confirms it.
      </p>
      <Problem error={error} />
      {rules?.length === 0 && <Empty>No standing rules: people decide every time.</Empty>}
      <Folding
        items={ordered(rules ?? [])}
        isOver={({ state }) => state === "expired" || state === "revoked"}
        row={(rule) => (
          <RuleRow
            key={rule.id}
            rule={rule}
            me={me}
            onRevoke={mayEnd(me) ? () => setAsking({ what: "endRule", rule }) : undefined}
          />
        )}
      />
      <div className="flex flex-wrap items-center justify-between gap-2 pt-3">
        <h2>Grants: overridden findings</h2>
        <Button
          disabled={!has(me, "reviewer")}
          title={has(me, "reviewer") ? "" : "Only reviewers can override a finding"}
          onClick={() => setAsking({ what: "give" })}
        >
          Override a finding
        </Button>
      </div>
      <Problem error={problem} />
      {grants?.length === 0 && <Empty>No finding is overridden.</Empty>}
      <Folding
        items={(grants ?? []).toReversed()}
        isOver={({ state }) => state !== "live"}
        row={(grant) => (
          <GrantRow
            key={grant.id}
            grant={grant}
            onRevoke={mayEnd(me) ? () => setAsking({ what: "endGrant", grant }) : undefined}
          />
        )}
      />
      {asking?.what === "propose" && <ProposeDialog onClose={close} />}
      {asking?.what === "give" && <GiveDialog onClose={close} />}
      {(asking?.what === "endRule" || asking?.what === "endGrant") && (
        <EndDialog asking={asking} onClose={close} />
      )}
    </div>
  );
}

interface FoldingProps<Item> {
  readonly items: readonly Item[];
  readonly isOver: (item: Item) => boolean;
  readonly row: (item: Item) => ReactNode;
}

/** Active rules and proposals are visible; expired and revoked ones are folded. */
function Folding<Item>({ items, isOver, row }: FoldingProps<Item>) {
  const list = "border-line bg-panel divide-line divide-y rounded-lg border empty:hidden";
  const over = items.filter(isOver);
  return (
    <>
      <ul className={list}>{items.filter((item) => !isOver(item)).map(row)}</ul>
      {over.length > 0 && (
        <details>
          <summary className="text-muted marked">{over.length} expired or revoked</summary>
          <ul className={`mt-2 ${list}`}>{over.map(row)}</ul>
        </details>
      )}
    </>
  );
}

const ORDER: readonly Rule["state"][] = ["proposed", "active", "expired", "revoked"];

/** Proposals first, then active rules; the newest of each on top. */
function ordered(rules: readonly Rule[]): readonly Rule[] {
  const place = ({ state }: Rule) => ORDER.indexOf(state);
  return rules.toReversed().toSorted((a, b) => place(a) - place(b));
}

function has(me: Me | undefined, role: Me["roles"][number]): boolean {
  return me?.roles.includes(role) === true;
}

function mayEnd(me: Me | undefined): boolean {
  return has(me, "reviewer") || has(me, "operator") || has(me, "admin");
}

interface EndProps {
  readonly asking: Extract<Asking, { what: "endRule" | "endGrant" }>;
  readonly onClose: () => void;
}

function EndDialog({ asking, onClose }: EndProps) {
  const isRule = asking.what === "endRule";
  const sending = useSending([isRule ? "rules" : "grants"], onClose);
  const end = (reason: string) =>
    sending.run(() =>
      asking.what === "endRule"
        ? client.standingRules.revoke({ id: asking.rule.id, reason })
        : client.grants.revoke({ id: asking.grant.id, reason }),
    );
  return (
    <ReasonDialog
      title={isRule ? "Revoke the rule" : "Revoke the override"}
      label="Reason (recorded in the audit log)"
      submit="Revoke"
      tone="danger"
      required
      busy={sending.busy}
      error={sending.error}
      onSubmit={end}
      onClose={onClose}
    />
  );
}
