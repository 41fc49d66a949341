import { useState } from "react";
import { client, type VerifyReport } from "../../app/client.ts";
import { plural } from "../../app/words.ts";
import { Badge, type Tone } from "../../ui/badge.tsx";
import { Button } from "../../ui/button.tsx";
import { Fact, Facts, Panel, Problem } from "../../ui/panel.tsx";
import { Ago } from "../../ui/time.tsx";

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
      title="Verify the trail"
      aside={
        <Button
          tone="primary"
          disabled={!mayVerify || busy}
          title={mayVerify ? "" : "Only operators, auditors and admins can verify"}
          onClick={verify}
        >
          {busy ? "Verifying…" : "Verify"}
        </Button>
      }
    >
      <Problem error={error} />
      <div role="status">
        {report === undefined ? (
          <p className="text-muted">
            Every entry carries the hash of the one before; signed anchors outside the database
            notice a cut tail.
          </p>
        ) : (
          <Result report={report} />
        )}
      </div>
    </Panel>
  );
}

function Result({ report }: { report: VerifyReport }) {
  const { entries, anchors, problems, blindWindow, lastAnchorAt } = report;
  const { tone, badge, sentence } = verdictOf(report);
  return (
    <div className="space-y-2">
      <p>
        <Badge tone={tone}>{badge}</Badge>
      </p>
      <p>
        Verified {plural(entries, "entry", "entries")}. {sentence}
      </p>
      <Facts>
        <Fact name="Anchors">
          {anchors === 0 || lastAnchorAt === undefined ? (
            "none"
          ) : (
            <>
              {anchors.toLocaleString("en")}, the last <Ago at={lastAnchorAt} />;{" "}
              {plural(blindWindow.entries, "entry", "entries")} newer than that
            </>
          )}
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

interface Verdict {
  readonly tone: Tone;
  readonly badge: string;
  readonly sentence: string;
}

/** Green only when anchors cover the end: without them, missing entries there cannot be noticed. */
function verdictOf({ ok, anchors, blindWindow, problemCount }: VerifyReport): Verdict {
  if (!ok) {
    const sentence = "The trail was changed or truncated.";
    return { tone: "danger", badge: plural(problemCount, "problem"), sentence };
  }
  if (anchors === 0) {
    const sentence =
      "No entry between the first and the last was changed; without an anchor it cannot be known whether entries are missing at the end.";
    return { tone: "warn", badge: "end not covered", sentence };
  }
  if (blindWindow.entries > 0) {
    const newest = plural(blindWindow.entries, "entry is", "entries are");
    const sentence = `The chain is intact; the newest ${newest} not covered by an anchor yet.`;
    return { tone: "plain", badge: "chain intact", sentence };
  }
  const sentence = "The chain is intact; the tail is covered by an anchor.";
  return { tone: "ok", badge: "intact and covered", sentence };
}
