import type { Decision, Tool } from "../../app/client.ts";
import type { Json } from "../../text/canonical.ts";
import { isObject } from "../../text/json-diff.ts";
import { Badge, ClassBadge } from "../../ui/badge.tsx";
import { JsonDiff, TextView } from "../../ui/diff-view.tsx";
import { JsonView } from "../../ui/json-view.tsx";
import { Fact, Facts, Panel } from "../../ui/panel.tsx";
import { Untrusted } from "../../ui/untrusted.tsx";

type Targets = Decision["targets"][number] | undefined;
type PlannedCall = NonNullable<Decision["calls"]>[number];

interface Props {
  readonly call: PlannedCall;
  readonly dryRun: Json | undefined;
  readonly tool: Tool | undefined;
  /** What it would touch, resolved; null when the tool does not declare it. */
  readonly targets: Targets;
  /** Like "2 of 5"; empty for a single call. */
  readonly place: string;
}

/** One call: which tool on what, with which input, and what its dry run says would happen. */
export function CallView({ call, dryRun, tool, targets, place }: Props) {
  return (
    <Panel
      title={
        place === "" ? (
          "What would run"
        ) : (
          <span className="flex flex-wrap items-center gap-2">
            <span className="text-muted font-normal">{place}</span>
            <Untrusted text={call.tool} mono inline />
            <ClassBadge safetyClass={tool?.safetyClass ?? "irreversible"} />
          </span>
        )
      }
    >
      <div className="space-y-3">
        <ToolFacts call={call} tool={tool} targets={targets} />
        <div>
          <h3 className="text-muted mb-1 text-xs font-semibold">
            Input, exactly as it would be sent
          </h3>
          <JsonView value={call.input} label={`Input of ${call.tool}`} />
        </div>
        <DryRunView dryRun={dryRun} />
      </div>
    </Panel>
  );
}

function ToolFacts({ call, tool, targets }: Pick<Props, "call" | "tool" | "targets">) {
  return (
    <Facts>
      {tool === undefined ? (
        <Fact name="Tool">
          <span className="text-danger font-medium">
            This tool is no longer registered. What it would do cannot be inspected.
          </span>
        </Fact>
      ) : (
        <Fact name="Touches">
          {tool.capability.affects.length === 0
            ? "the tool does not say"
            : tool.capability.affects.join(", ")}{" "}
          ({tool.metadata.effect})
        </Fact>
      )}
      {targets != null && targets.length > 0 && (
        <Fact name="Target">
          <TargetList targets={targets} />
        </Fact>
      )}
      {call.workingDirectory !== "" && (
        <Fact name="Folder">
          <Untrusted text={call.workingDirectory} mono inline />
        </Fact>
      )}
      {tool !== undefined && (
        <Fact name="Undo">
          {wayBack(tool, tool.capability.undoMethod, tool.capability.undoTool)}
        </Fact>
      )}
      {tool !== undefined && call.definition !== tool.definitionHash && (
        <Fact name="Tool">
          <Badge tone="warn">changed since this was requested</Badge>
        </Fact>
      )}
    </Facts>
  );
}

const KINDS = {
  file: "",
  unresolved: "cannot be resolved",
  command: "command",
  url: "address",
  other: "",
} as const;

/** Links and relative paths are followed: this is where it would really go, as things are now. */
function TargetList({ targets }: { targets: NonNullable<Targets> }) {
  return (
    <ul>
      {targets.map(({ kind, target, access, reason }) => (
        <li key={`${kind} ${target} ${access}`}>
          <Untrusted text={target} mono inline />{" "}
          {access !== undefined && (
            <Badge tone={access === "write" ? "warn" : "plain"}>{access}s</Badge>
          )}{" "}
          {KINDS[kind] !== "" && (
            <Badge tone={kind === "unresolved" ? "danger" : "plain"}>{KINDS[kind]}</Badge>
          )}{" "}
          {reason !== undefined && <Untrusted text={reason} inline className="text-danger" />}
        </li>
      ))}
    </ul>
  );
}

function wayBack(tool: Tool, method: string, undoTool: string): string {
  if (tool.safetyClass === "read") return "nothing to undo: it only reads";
  if (tool.safetyClass === "irreversible") return "none: it is irreversible";
  const how = undoTool !== "" ? ` by ${undoTool}` : method === "tool" ? " by another call" : "";
  const until = tool.has.stateVersion ? ", until the target is changed" : "";
  return `can be undone${how}${until}`;
}

/** The tool's own dry run: our code asked it, no agent wrote it. */
function DryRunView({ dryRun }: { dryRun: Json | undefined }) {
  if (!isObject(dryRun) || "unavailable" in dryRun) {
    const why = isObject(dryRun) ? String(dryRun["unavailable"]) : "there is no preview";
    return (
      <p className="border-warn bg-warn-soft text-warn rounded-md border px-2 py-1">
        <strong>Cannot be inspected:</strong> <Untrusted text={why} inline />. What would change is
        not known before it runs.
      </p>
    );
  }
  const { summary, preview, impact } = dryRun;
  const text = typeof preview === "string" ? preview : "";
  return (
    <div className="space-y-2">
      <h3 className="text-muted text-xs font-semibold">What would happen (dry run)</h3>
      <p className="font-medium">
        <Untrusted text={String(summary ?? "")} />
      </p>
      {text !== "" && text !== summary && <TextView text={text} label="Dry run" />}
      {isObject(impact) && Object.keys(impact).length > 0 && <Impact impact={impact} />}
    </div>
  );
}

function Impact({ impact }: { impact: { readonly [key: string]: Json } }) {
  const { before, after, ...rest } = impact;
  const hasDiff = before !== undefined && after !== undefined;
  const flat = Object.entries(hasDiff ? rest : impact);
  const isFlat = flat.every(([, value]) => typeof value !== "object" || value === null);
  return (
    <div className="space-y-2">
      <h3 className="text-muted text-xs font-semibold">Blast radius</h3>
      {hasDiff && <JsonDiff before={before} after={after} label="Before and after" />}
      {flat.length > 0 && isFlat && (
        <Facts>
          {flat.map(([name, value]) => (
            <div key={name} className="contents">
              <dt className="text-muted min-w-0">
                <Untrusted text={name} inline />
              </dt>
              <dd className="min-w-0">
                <Untrusted text={String(value)} inline />
              </dd>
            </div>
          ))}
        </Facts>
      )}
      {!isFlat && <JsonView value={Object.fromEntries(flat)} label="Impact" />}
    </div>
  );
}
