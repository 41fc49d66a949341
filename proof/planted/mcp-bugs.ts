import type { Bug } from "./bug.ts";

/** Mistakes in the MCP gateway. */
export const MCP_BUGS: readonly Bug[] = [
  {
    name: "mcp-pin-not-checked",
    what: "a definition that has changed is trusted like the one that was accepted",
    file: "src/mcp/pins.ts",
    right: "if (pinned !== undefined) return definitionDifference(pinned, definition);",
    wrong: "if (pinned !== undefined) return [];",
    caughtBy: { file: "tests/mcp/definitions.test.ts", title: "changed is not trusted" },
  },
  {
    name: "mcp-hint-trusted",
    what: "a tool that calls itself read-only passes",
    file: "src/mcp/offered-tools.ts",
    right: 'isRead: own.effect === "read",',
    wrong: 'isRead: (own.effect ??= hintOf(listed, "readOnlyHint") ? "read" : "write") === "read",',
    caughtBy: {
      file: "tests/mcp/gateway.test.ts",
      title: "readOnlyHint does not let a write pass",
    },
  },
  {
    name: "mcp-sent-before-approval",
    what: "the snapshot before a write is taken with the write itself",
    file: "src/mcp/gateway.ts",
    right: "const params = paramsOf(undo.snapshot.tool, snapshotInput(undo.snapshot, input));",
    wrong: "const params = paramsOf(undo.tool, input);",
    caughtBy: { file: "tests/mcp/undo.test.ts", title: "" },
  },
  {
    name: "mcp-prefix-ignored",
    what: "the names of several upstreams are not kept apart",
    file: "src/mcp/offered-tools.ts",
    // biome-ignore lint/suspicious/noTemplateCurlyInString: it is source text
    right: 'return prefix ?? (all.length > 1 ? `${name}_` : "");',
    // biome-ignore lint/suspicious/noTemplateCurlyInString: it is source text
    wrong: 'return prefix ?? (all.length > 9 ? `${name}_` : "");',
    caughtBy: { file: "tests/mcp/gateway.test.ts", title: "under prefixes" },
  },
  {
    name: "mcp-roots-forwarded",
    what: "upstreams learn the client's folders although the operator did not allow it",
    file: "src/mcp/gateway.ts",
    right: 'refused: roots === "refuse" ? ["roots", ...refuse] : refuse,',
    wrong: "refused: refuse,",
    caughtBy: { file: "tests/mcp/gateway.test.ts", title: "folders stay with the client" },
  },
  {
    name: "mcp-hidden-text-passed",
    what: "a tool with text that nobody can see is offered",
    file: "src/mcp/offered-tools.ts",
    right: "if (hidden !== undefined) throw refusal(",
    wrong: "if (hidden === name) throw refusal(",
    caughtBy: { file: "tests/mcp/definitions.test.ts", title: "in its description is not offered" },
  },
  {
    name: "mcp-restart-repeats",
    what: "a request that was under way when the upstream ended is sent again",
    file: "src/mcp/upstream.ts",
    right: "return (await current()).request(requestMessage(nextId(), method, all), options);",
    wrong: `const again = async () => (await current()).request(requestMessage(nextId(), method, all), options);
      return again().catch(again);`,
    caughtBy: { file: "tests/mcp/gateway.test.ts", title: "whose upstream died stays unknown" },
  },
  {
    name: "mcp-delivered-twice",
    what: "the outcome of a call is handed on to every process that asks",
    file: "src/gate/resume.ts",
    right: "return (await deliverOnce(context, decided)) ? answer : undefined;",
    wrong: "return answer;",
    caughtBy: { file: "tests/mcp/gateway.test.ts", title: "while it is being executed" },
  },
  {
    name: "mcp-sql-several-statements",
    what: "a text of several statements counts as reading when it begins with a SELECT",
    file: "src/policy/sql.ts",
    right: 'if (token.text === ";") return index === tokens.length - 1;',
    wrong: 'if (token.text === ";") return true;',
    caughtBy: { file: "src/policy/sql.test.ts", title: "" },
  },
];
