import { useState } from "react";
import { client, type VerifyReport } from "../../app/client.ts";
import { plural } from "../../app/words.ts";
import { Badge } from "../../ui/badge.tsx";
import { Button } from "../../ui/button.tsx";
import { Fact, Facts, Panel, Problem } from "../../ui/panel.tsx";

/** Numbers, links, hashes, times and anchors, checked when it is asked for. */
export function Verify({ mayVerify }: { mayVerify: boolean }) {
  const [report, setReport] = useState<VerifyReport>();
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<unknown>(null);
  async function verify() {
    setBusy(true);
    setError(null);
    setReport(undefined);
    try {
      setReport(await client.audit.verify());
    } catch (problem) {
      setError(problem);
    }
    setBusy(false);
  }
  return (
    <Panel
      title="Has anybody changed the trail?"
      aside={
        <Button
          tone="primary"
          disabled={!mayVerify || busy}
          title={mayVerify ? "" : "Operators, auditors and admins verify"}
          onClick={verify}
        >
          {busy ? "Verifying…" : "Verify"}
        </Button>
      }
    >
      <Problem error={error} />
      <div role="status">
        {report === undefined ? (
          <p className="text-muted">Every entry carries the hash of the one before; signed anchors outside the database notice a cut tail.</p>
        ) : (
          <Result report={report} />
        )}
      </div>
    </Panel>
  );
}

function Result({ report }: { report: VerifyReport }) {
  const { ok, entries, anchors, problems, problemCount, blindWindow } = report;
  return (
    <div className="space-y-2">
      <p>
        <Badge tone={ok ? "ok" : "danger"}>{ok ? "nobody changed it" : `${plural(problemCount, "problem")}`}</Badge>
      </p>
      <Facts>
        <Fact name="Entries">{entries.toLocaleString("en")} checked</Fact>
        <Fact name="Anchors">
          {anchors === 0
            ? "none: whoever owns the database could cut the end off unseen"
            : `${anchors.toLocaleString("en")}; ${plural(blindWindow.entries, "entry", "entries")} newer than the last`}
        </Fact>
      </Facts>
      {problems.length > 0 && (
        <ul className="text-danger list-disc pl-5">
          {problems.map(({ code, seq, message }) => (
            <li key={`${code}-${seq}-${message}`}>
              {seq !== undefined && `#${seq}: `}
              {message}
            </li>
          ))}
        </ul>
      )}
    </div>
  );
}
