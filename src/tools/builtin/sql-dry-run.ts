import type { JsonObject } from "../../util/json.ts";
import { defineTool } from "../define-tool.ts";
import type { Tool } from "../tool.ts";
import { jsonInput } from "./json-input.ts";
import { answerOrRefuse } from "./refusal.ts";
import { type Rehearsal, type RehearsalInput, rehearse } from "./rehearse.ts";
import { COMPARISONS } from "./sql-statements.ts";
import {
  declareTables,
  ROW_INPUT,
  sqlResource,
  tableInput,
  tableNamed,
  VALUE_INPUT,
} from "./sql-table.ts";
import type { SqlRowOptions } from "./sql-update-row.ts";
import { openStaging } from "./staging-database.ts";

const CONDITIONS: JsonObject = {
  type: "array",
  items: {
    type: "object",
    properties: {
      column: { type: "string" },
      is: { enum: [...COMPARISONS] },
      value: VALUE_INPUT,
    },
    required: ["column", "is"],
    additionalProperties: false,
  },
  minItems: 1,
  maxItems: 20,
  description: "All of them must hold.",
};

/** Tries a change out inside a transaction that is always rolled back, and shows the rows before and after (I-17). */
export function sqlDryRun(options: Omit<SqlRowOptions, "retryBudget">): Tool {
  const database = openStaging(options.database);
  const tables = declareTables(options.tables);
  return defineTool({
    name: "sql.dry_run",
    description:
      "Shows what an insert, update or delete would do to a staging table: it is run inside a transaction and always rolled back. Give in previewWhere which rows you mean to touch; if others would be touched, the answer says so.",
    input: jsonInput<RehearsalInput>(
      {
        table: tableInput(tables),
        operation: { enum: ["insert", "update", "delete"] },
        set: { ...ROW_INPUT, description: "New values; for insert and update." },
        where: CONDITIONS,
        previewWhere: CONDITIONS,
      },
      ["table", "operation"],
    ),
    // Rolled back is not the same as never happened: locks are taken for a moment and sequences move on.
    safety: { effect: "read", concurrencySafe: false, affects: ["database"] },
    permissionClass: "generic",
    auditOperation: "read",
    searchHint: "preview simulate sql change",
    resources: ({ input }) => [sqlResource(database, input.table, "write")],
    execute: ({ input }) =>
      answerOrRefuse<Rehearsal>(async () => {
        const rehearsal = await rehearse(database, tableNamed(tables, input.table), input);
        return { text: textOf(input, rehearsal), data: rehearsal };
      }),
  });
}

function textOf({ table, operation }: RehearsalInput, rehearsal: Rehearsal): string {
  const { affected, before, after, capped, signals } = rehearsal;
  const lines = [
    `The ${operation} would touch ${affected} rows of ${table}. It was rolled back: nothing was changed.`,
    ...signals.map(({ message }) => `Attention: ${message}`),
    ...(before.length > 0 ? [`before: ${JSON.stringify(before)}`] : []),
    ...(after.length > 0 ? [`after: ${JSON.stringify(after)}`] : []),
    ...(capped ? ["(Only the first 100 rows are shown.)"] : []),
  ];
  return lines.join("\n");
}
