import { useState } from "react";
import type { Decision, Tool } from "../../app/client.ts";
import { useKeys } from "../../app/keys.ts";
import { bytesOf } from "../../app/words.ts";
import { canonical, type Json } from "../../text/canonical.ts";
import { Badge, ClassBadge } from "../../ui/badge.tsx";
import { ChangeView, presentedIn, sentenceOf } from "../../ui/change-view.tsx";
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

/** One call: what would change, where, and the input as it would be sent. */
export function CallView({ call, dryRun, tool, targets, place }: Props) {
  return (
    <Panel
      title={
        place === "" ? (
          "Change"
        ) : (
          <span className="flex flex-wrap items-center gap-2">
            <span className="text-muted font-normal">{place}</span>
            <Untrusted text={sentenceOf(dryRun) || call.tool} inline />
            <ClassBadge safetyClass={tool?.safetyClass ?? "irreversible"} />
          </span>
        )
      }
    >
      <div className="space-y-3">
        <ChangeView dryRun={dryRun} />
        <ToolFacts call={call} tool={tool} targets={targets} />
        <Input call={call} isTold={presentedIn(dryRun).title !== undefined} />
      </div>
    </Panel>
  );
}

/** A short input may be folded where the tool has put it into words; a long one is always in sight. */
const SHORT_BYTES = 2_000;

function Input({ call, isTold }: { call: PlannedCall; isTold: boolean }) {
  const mayFold = isTold && bytesOf(canonical(call.input as Json)) <= SHORT_BYTES;
  const [isOpen, setOpen] = useState(!mayFold);
  useKeys({ i: mayFold ? () => setOpen(!isOpen) : undefined });
  const view = <JsonView value={call.input as Json} label={`Input of ${call.tool}`} />;
  const name = (
    <>
      Input of <Untrusted text={call.tool} mono inline />, exactly as it would be sent
    </>
  );
  if (!mayFold) {
    return (
      <div>
        <h3 className="text-muted mb-1 text-xs font-semibold">{name}</h3>
        {view}
      </div>
    );
  }
  return (
    <details open={isOpen} onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary className="marked text-muted text-xs">
        <span>
          {name}{" "}
          <span aria-hidden="true" className="hidden lg:inline">
            <kbd>i</kbd>
          </span>
        </span>
      </summary>
      <div className="mt-1">{view}</div>
    </details>
  );
}

function ToolFacts({ call, tool, targets }: Pick<Props, "call" | "tool" | "targets">) {
  const isChanged = tool !== undefined && call.definition !== tool.definitionHash;
  const hasTargets = targets != null && targets.length > 0;
  if (tool !== undefined && !isChanged && !hasTargets && call.workingDirectory === "") return null;
  return (
    <Facts>
      {tool === undefined && (
        <Fact name="Tool">
          <span className="text-danger font-medium">
            This tool is no longer registered. What it would do cannot be inspected.
          </span>
        </Fact>
      )}
      {hasTargets && (
        <Fact name="Target">
          <TargetList targets={targets} />
        </Fact>
      )}
      {call.workingDirectory !== "" && (
        <Fact name="Folder">
          <Untrusted text={call.workingDirectory} mono inline />
        </Fact>
      )}
      {isChanged && (
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

/** How the calls can be undone, on one line. */
export function UndoLine({ calls, tools }: UndoProps) {
  const found = calls.map((call) =>
    tools?.find(({ name, metadata }) => name === call.tool || metadata.aliases.includes(call.tool)),
  );
  const words = [...new Set(found.map((tool) => (tool === undefined ? "" : undoWords(tool))))];
  return words.filter((one) => one !== "").join(" · ") || "unknown, its tool is gone";
}

interface UndoProps {
  readonly calls: readonly PlannedCall[];
  readonly tools: readonly Tool[] | undefined;
}

function undoWords(tool: Tool): string {
  const { undoTool } = tool.capability;
  if (tool.safetyClass === "read") return "nothing to undo, it only reads";
  if (tool.safetyClass === "irreversible") return "none, it is irreversible";
  const how = undoTool === "" ? "with one click" : `by ${undoTool}`;
  return `${how}${tool.has.stateVersion ? ", until the target is changed by others" : ""}`;
}
