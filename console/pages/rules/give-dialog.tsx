import { useQuery } from "@tanstack/react-query";
import { type FormEvent, useId, useState } from "react";
import { client } from "../../app/client.ts";
import { sessionsQuery } from "../../app/queries.ts";
import { useSending } from "../../app/sending.ts";
import { dataOf, sessionTrailQuery } from "../../app/trail.ts";
import { isObject } from "../../text/json-diff.ts";
import { Badge } from "../../ui/badge.tsx";
import { Button } from "../../ui/button.tsx";
import { Dialog, DialogActions } from "../../ui/dialog.tsx";
import { FIELD, Field } from "../../ui/field.tsx";
import { Empty, Problem } from "../../ui/panel.tsx";
import { Untrusted } from "../../ui/untrusted.tsx";

/** Only recently active sessions: older ones have nothing open. */
const MOST_SESSIONS = 100;

/** Choose a session, then one of the findings that stopped it. */
export function GiveDialog({ onClose }: { onClose: () => void }) {
  const { data: sessions = [], error } = useQuery(sessionsQuery);
  const [chosen, setChosen] = useState("");
  const id = useId();
  const lately = sessions.slice(-MOST_SESSIONS).toReversed();
  const session = lately.find((one) => one.id === chosen) ?? lately[0];
  return (
    <Dialog title="Override a finding" wide onClose={onClose}>
      <div className="space-y-3">
        <Problem error={error} />
        {session === undefined ? (
          <>
            <Empty>No recent session activity.</Empty>
            <DialogActions onCancel={onClose} />
          </>
        ) : (
          <>
            <Field id={id} label="Session">
              <select
                id={id}
                value={session.id}
                onChange={(event) => setChosen(event.target.value)}
                className={FIELD}
              >
                {lately.map((one) => (
                  <option key={one.id} value={one.id}>{`${one.agent} · ${one.id}`}</option>
                ))}
              </select>
            </Field>
            <Findings
              key={session.id}
              sessionId={session.id}
              since={session.createdAt}
              onClose={onClose}
            />
          </>
        )}
      </div>
    </Dialog>
  );
}

interface Found {
  readonly policy: string;
  readonly message: string;
}

interface FindingsProps {
  readonly sessionId: string;
  readonly since: string;
  readonly onClose: () => void;
}

function Findings({ sessionId, since, onClose }: FindingsProps) {
  const { data, error } = useQuery(sessionTrailQuery(sessionId, since));
  const [at, setAt] = useState(0);
  const [reason, setReason] = useState("");
  const sending = useSending(["grants"], onClose);
  const id = useId();
  const found = findingsIn((data?.entries ?? []).map(dataOf));
  const finding = found[at];
  const give = (event: FormEvent) => {
    event.preventDefault();
    if (finding === undefined || reason.trim() === "") return undefined;
    return sending.run(() => client.grants.give({ sessionId, finding, reason: reason.trim() }));
  };
  return (
    <form onSubmit={give} className="space-y-3">
      <Problem error={error ?? sending.error} />
      {data !== undefined && found.length === 0 && (
        <Empty>No policy stopped this session with a finding that a person can override.</Empty>
      )}
      {found.length > 0 && (
        <fieldset className="space-y-1">
          <legend className="mb-1 font-medium">Finding to override, for half an hour</legend>
          {found.map(({ policy, message }, index) => (
            <label key={`${policy} ${message}`} className="flex items-baseline gap-2">
              <input type="radio" name={id} checked={index === at} onChange={() => setAt(index)} />
              <span className="min-w-0">
                <Badge>{policy}</Badge> <Untrusted text={message} inline />
              </span>
            </label>
          ))}
        </fieldset>
      )}
      <Field id={`${id}-r`} label="Reason (recorded in the audit log)">
        <input
          id={`${id}-r`}
          value={reason}
          onChange={(event) => setReason(event.target.value)}
          className={FIELD}
        />
      </Field>
      <DialogActions onCancel={onClose}>
        <Button
          type="submit"
          tone="primary"
          disabled={finding === undefined || reason.trim() === "" || sending.busy}
        >
          {sending.busy ? "Sending…" : "Override"}
        </Button>
      </DialogActions>
    </form>
  );
}

/** Soft denials that were not overridden, each once, newest first. A hard one cannot be overridden; missing evidence only by evidence. */
function findingsIn(entries: readonly ReturnType<typeof dataOf>[]): readonly Found[] {
  const found = new Map<string, Found>();
  for (const { findings } of entries.toReversed()) {
    for (const one of Array.isArray(findings) ? findings : []) {
      if (!isObject(one) || one["severity"] !== "soft-deny") continue;
      const policy = String(one["policy"]);
      const message = String(one["message"]);
      found.set(JSON.stringify([policy, message]), { policy, message });
    }
  }
  return [...found.values()];
}
