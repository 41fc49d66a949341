import { defineTool } from "../define-tool.ts";
import type { Tool } from "../tool.ts";
import { jsonInput } from "./json-input.ts";
import { answerOrRefuse } from "./refusal.ts";
import type { SqlDatabase, SqlRow, SqlValue } from "./sql-database.ts";
import { VALUE_INPUT } from "./sql-table.ts";

export interface SqlQueryOptions {
  readonly database: SqlDatabase;
  readonly maxRows?: number;
  /**
   * `generic` when left out: each query is a question unless a rule allows it. `readonly` lets all through at once; say so
   * where the database's role can read nothing that the agent should not see, and call no function that acts.
   */
  readonly permissionClass?: "readonly" | "generic";
}

interface QueryInput {
  readonly sql: string;
  readonly values?: readonly SqlValue[];
}

interface QueryData {
  readonly rows: readonly SqlRow[];
  readonly more: boolean;
}

const DEFAULT_MAX_ROWS = 200;

/** One query where nothing can be written: the database itself refuses every attempt. */
export function sqlQuery(options: SqlQueryOptions): Tool {
  const { database, maxRows = DEFAULT_MAX_ROWS, permissionClass = "generic" } = options;
  const places = database.dialect === "postgres" ? "$1, $2, …" : "?";
  return defineTool({
    name: "sql.query",
    description: `Reads from the ${database.dialect} database ${database.name} with one SELECT. Write values as ${places} and give them in values. At most ${maxRows} rows come back. Nothing can be changed with it.`,
    input: jsonInput<QueryInput>(
      {
        sql: { type: "string", minLength: 1, maxLength: 20_000 },
        values: { type: "array", items: VALUE_INPUT, maxItems: 100 },
      },
      ["sql"],
    ),
    safety: { effect: "read", concurrencySafe: true, affects: ["database"] },
    permissionClass,
    auditOperation: "read",
    searchHint: "select database table rows",
    resources: () => [{ kind: "other", id: `sql:${database.name}`, access: "read" }],
    execute: ({ input }) =>
      answerOrRefuse<QueryData>(async () => {
        const query = { text: input.sql, values: input.values ?? [] };
        const { rows, more } = await database.read(query, maxRows);
        const rest = more ? `\n(There are more; only the first ${maxRows} are shown.)` : "";
        return {
          text: `${rows.length} rows:\n${JSON.stringify(rows)}${rest}`,
          data: { rows, more },
        };
      }),
  });
}
