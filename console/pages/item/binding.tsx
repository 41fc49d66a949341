import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import type { Decision, Interaction, Preview } from "../../app/client.ts";
import { useKeys } from "../../app/keys.ts";
import { canonical, type Json, sha256Hex } from "../../text/canonical.ts";
import { Fact, Facts } from "../../ui/panel.tsx";
import { Moment } from "../../ui/time.tsx";

/** `reading` while the hashes are being computed; `unknown` when they could not be. Only `yes` allows an approval. */
export type Bound = "yes" | "no" | "unknown" | "reading";

/**
 * Whether what this page shows is what an approval would be bound to. The browser computes both hashes itself, so that an
 * error in the page or in transit cannot lead to an approval of something else.
 */
export function useBinding(
  question: Interaction | null,
  decision: Decision | null,
  preview: Preview | null,
): Bound {
  const isConfirm = question?.type === "confirm";
  const isPossible = isConfirm && decision !== null && preview !== null;
  const { data, isPending } = useQuery({
    queryKey: ["binding", question?.id, question?.hash, decision?.updatedAt, preview?.nonce],
    enabled: isPossible,
    queryFn: async (): Promise<Bound> => {
      if (decision === null || preview === null) return "unknown";
      const whole = await sha256Hex(canonical({ ...preview, v: 1 } as unknown as Json));
      if (whole !== question?.hash) return "no";
      const { calls, raw } = decision;
      if (calls === null && raw === null) return "unknown";
      const action =
        calls === null
          ? Uint8Array.from(atob(raw?.base64 ?? ""), (unit) => unit.charCodeAt(0))
          : canonical({ v: 1, calls: calls as unknown as Json });
      // People read the text, so it must be exactly these bytes.
      if (raw?.text != null && (await sha256Hex(raw.text)) !== preview.actionHash) return "no";
      return (await sha256Hex(action)) === preview.actionHash ? "yes" : "no";
    },
  });
  if (!isConfirm) return "yes";
  return isPossible && isPending ? "reading" : (data ?? "unknown");
}

const WORDS = {
  yes: ["text-ok", "✓ Exactly this will run: your browser checked it against the hash"],
  no: ["text-danger", "✗ This page shows something else than what would run: do not approve"],
  unknown: ["text-danger", "✗ It cannot be checked what would run: approval disabled"],
  reading: ["text-muted", "Checking that exactly this would run…"],
} as const;

/** One line; the hashes behind it. */
export function Binding({ bound, question, preview }: BindingProps) {
  const [isOpen, setOpen] = useState(false);
  useKeys({ ".": () => setOpen(!isOpen) });
  const [tone, words] = WORDS[bound];
  return (
    <details open={isOpen} onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary className={`marked ${tone}`}>
        <span>
          {words}{" "}
          <span aria-hidden="true" className="hidden lg:inline">
            <kbd>.</kbd>
          </span>
        </span>
      </summary>
      <Facts>
        <Fact name="Hash">
          <Hash text={question.hash} />
        </Fact>
        <Fact name="Action">
          <Hash text={preview.actionHash} />
        </Fact>
        <Fact name="Policy">
          <Hash text={preview.policyHash} />
        </Fact>
        <Fact name="Valid until">
          <Moment at={preview.expiresAt} />
        </Fact>
      </Facts>
    </details>
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
