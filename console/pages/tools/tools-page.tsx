import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import type { Tool } from "../../app/client.ts";
import { toolsQuery } from "../../app/queries.ts";
import type { Json } from "../../text/canonical.ts";
import { Badge, ClassBadge } from "../../ui/badge.tsx";
import { JsonView } from "../../ui/json-view.tsx";
import { Empty, Fact, Facts, PageTitle, Problem } from "../../ui/panel.tsx";
import { Untrusted } from "../../ui/untrusted.tsx";
import { StoppedTools } from "./stopped-tools.tsx";

/** Every tool with its data sheet. */
export function ToolsPage() {
  const { data: tools, error } = useQuery(toolsQuery);
  const [text, setText] = useState("");
  const wanted = text.toLowerCase();
  const shown = (tools ?? []).filter(({ name, description }) =>
    `${name} ${description}`.toLowerCase().includes(wanted),
  );
  return (
    <div className="mx-auto max-w-5xl p-3">
      <PageTitle title="Tools">
        <input
          type="search"
          aria-label="Search tools"
          placeholder="Name or description"
          value={text}
          onChange={(event) => setText(event.target.value)}
          className="border-strong bg-panel rounded-md border px-2 py-1"
        />
      </PageTitle>
      <StoppedTools />
      <Problem error={error} />
      {tools !== undefined && shown.length === 0 && <Empty>No matching tool.</Empty>}
      <ul className="border-line bg-panel divide-line divide-y rounded-lg border empty:hidden">
        {shown.map((tool) => (
          <ToolRow key={tool.name} tool={tool} />
        ))}
      </ul>
    </div>
  );
}

function ToolRow({ tool }: { tool: Tool }) {
  const { name, description, safetyClass, metadata, capability, has, version, definitionHash } =
    tool;
  return (
    <li className="px-3 py-2">
      <details>
        <summary className="marked">
          <span className="flex min-w-0 flex-wrap items-center gap-2">
            <Untrusted text={name} mono inline className="font-semibold" />
            <ClassBadge safetyClass={safetyClass} />
            {metadata.destructive && <Badge tone="danger">destructive</Badge>}
            {safetyClass !== "read" && (
              <Badge tone={has.dryRun ? "ok" : "warn"}>
                {has.dryRun ? "dry run" : "no dry run"}
              </Badge>
            )}
            {has.probe && <Badge tone="ok">has a probe</Badge>}
            {has.idempotencyKey && <Badge tone="ok">idempotent</Badge>}
          </span>
        </summary>
        <div className="mt-2 space-y-2">
          <Facts>
            <Fact name="Effect">{metadata.effect}</Fact>
            <Fact name="Permission">{metadata.permissionClass}</Fact>
            <Fact name="Touches">{capability.affects.join(", ") || "it does not say"}</Fact>
            <Fact name="Confidence">
              {capability.confidenceMin === 0
                ? "not asked for"
                : `at least ${capability.confidenceMin}`}
            </Fact>
            <Fact name="Undo">
              {capability.undoTool || capability.undoMethod || "none declared"}
            </Fact>
            {metadata.aliases.length > 0 && (
              <Fact name="Aliases">{metadata.aliases.join(", ")}</Fact>
            )}
            {version !== null && <Fact name="Version">{version}</Fact>}
            <Fact name="Definition">
              <code className="font-mono text-xs break-all">{definitionHash}</code>
            </Fact>
          </Facts>
          <JsonView value={tool.inputSchema as Json} label={`Input schema of ${name}`} />
        </div>
      </details>
      <p className="text-muted ml-4">
        <Untrusted text={description} />
      </p>
    </li>
  );
}
