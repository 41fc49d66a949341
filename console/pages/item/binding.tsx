import { useQuery } from "@tanstack/react-query";
import type { Decision, Interaction, Preview } from "../../app/client.ts";
import { canonical, type Json, sha256Hex } from "../../text/canonical.ts";
import { Badge } from "../../ui/badge.tsx";
import { Fact, Facts, Panel } from "../../ui/panel.tsx";
import { Moment } from "../../ui/time.tsx";

export type Bound = "yes" | "no" | "unknown";

/**
 * Whether what this page shows is what a yes would be bound to. The browser computes both hashes itself, so that neither a
 * slip in the page nor on the way can get a yes for something else.
 */
export function useBinding(
  question: Interaction | null,
  decision: Decision | null,
  preview: Preview | null,
): Bound {
  const isConfirm = question?.type === "confirm";
  const { data } = useQuery({
    queryKey: ["binding", question?.id, question?.hash, decision?.updatedAt, preview?.nonce],
    enabled: isConfirm && decision !== null && preview !== null,
    queryFn: async (): Promise<Bound> => {
      if (decision === null || preview === null) return "unknown";
      const whole = await sha256Hex(canonical({ ...preview, v: 1 } as unknown as Json));
      if (whole !== question?.hash) return "no";
      const { calls, raw } = decision;
      const action =
        calls === null
          ? (raw?.text ?? undefined)
          : canonical({ v: 1, calls: calls as unknown as Json });
      // Bytes that are no text cannot be put together again here; then nothing is claimed.
      if (action === undefined) return "unknown";
      return (await sha256Hex(action)) === preview.actionHash ? "yes" : "no";
    },
  });
  return isConfirm ? (data ?? "unknown") : "yes";
}

export function Binding({ bound, question, preview }: BindingProps) {
  return (
    <Panel title="What a yes is bound to">
      <Facts>
        <Fact name="Checked here">
          {bound === "yes" && <Badge tone="ok">this page shows the very bytes that are hashed</Badge>}
          {bound === "no" && <Badge tone="danger">this page shows something else: do not approve</Badge>}
          {bound === "unknown" && <Badge tone="warn">cannot be checked</Badge>}
        </Fact>
        <Fact name="Hash">
          <Hash text={question.hash} />
        </Fact>
        <Fact name="Action">
          <Hash text={preview.actionHash} />
        </Fact>
        <Fact name="Policy">
          <Hash text={preview.policyHash} />
        </Fact>
        <Fact name="Good until">
          <Moment at={preview.expiresAt} />
        </Fact>
      </Facts>
    </Panel>
  );
}

interface BindingProps {
  readonly bound: Bound;
  readonly question: Interaction;
  readonly preview: Preview;
}

function Hash({ text }: { text: string }) {
  return <code className="font-mono text-xs break-all">{text}</code>;
}
