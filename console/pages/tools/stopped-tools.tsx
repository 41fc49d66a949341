import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { client } from "../../app/client.ts";

import { breakersQuery, denialsQuery, meQuery } from "../../app/queries.ts";
import { useSending } from "../../app/sending.ts";
import { plural } from "../../app/words.ts";
import { Badge } from "../../ui/badge.tsx";
import { Button } from "../../ui/button.tsx";
import { Problem } from "../../ui/panel.tsx";
import { Untrusted } from "../../ui/untrusted.tsx";
import { ReasonDialog } from "../item/reason-dialog.tsx";

/** Tools whose breaker is open, and how many calls were denied. */
export function StoppedTools() {
  const { data: breakers, error } = useQuery(breakersQuery);
  const { data: denials } = useQuery(denialsQuery);
  const { data: me } = useQuery(meQuery);
  const [closing, setClosing] = useState<string>();
  const open = (breakers ?? []).filter(({ state }) => state === "open");
  const mayClose = me?.roles.some((role) => role === "operator" || role === "reviewer") === true;
  return (
    <section aria-label="Stopped tools and denials" className="mb-3 space-y-2 empty:hidden">
      <Problem error={error} />
      {open.map(({ id, failures, reason }) => (
        <div
          key={id}
          data-breaker={id}
          className="border-line bg-panel flex flex-wrap items-center gap-2 rounded-lg border px-3 py-2"
        >
          <Badge tone="danger">stopped</Badge>
          <Untrusted text={id} mono inline className="font-semibold" />
          <span>after {failures} failures in a row. The last one:</span>
          <Untrusted text={reason} inline />
          {mayClose && (
            <Button className="ml-auto" onClick={() => setClosing(id)}>
              Allow again
            </Button>
          )}
        </div>
      ))}
      {denials !== undefined && denials.total > 0 && (
        <details className="border-line bg-panel rounded-lg border px-3 py-2">
          <summary>
            {plural(denials.total, "call")} denied since the server was started: by tool, check and
            agent
          </summary>
          <div className="mt-2 grid gap-3 sm:grid-cols-3">
            <Denied title="Tool" items={denials.byTool} />
            <Denied title="Check" items={denials.byPolicy} />
            <Denied title="Agent" items={denials.byAgent} />
          </div>
        </details>
      )}
      {closing !== undefined && (
        <CloseBreaker tool={closing} onClose={() => setClosing(undefined)} />
      )}
    </section>
  );
}

/** All of them, the most frequent first. */
function Denied({
  title,
  items,
}: {
  title: string;
  items: readonly { readonly name: string; readonly count: number }[];
}) {
  return (
    <table aria-label={`Denied by ${title.toLowerCase()}`} className="text-left">
      <thead className="text-muted text-xs">
        <tr>
          <th className="font-medium">{title}</th>
          <th className="text-right font-medium">Denied</th>
        </tr>
      </thead>
      <tbody>
        {items.map(({ name, count }) => (
          <tr key={name}>
            <td>
              <Untrusted text={name} inline />
            </td>
            <td className="text-right tabular-nums">{count}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

function CloseBreaker({ tool, onClose }: { tool: string; onClose: () => void }) {
  const { busy, error, run } = useSending(breakersQuery.queryKey, onClose);
  return (
    <ReasonDialog
      title={`Allow ${tool} again`}
      label="Why can it be called again?"
      submit="Allow again"
      required
      busy={busy}
      error={error}
      onSubmit={(reason) => void run(() => client.breakers.close({ tool, reason }))}
      onClose={onClose}
    />
  );
}
