import type { InputIssue, ToolResult } from "./tool.ts";

/** The answer to a call whose input does not fit: the tool was not called, and this is what to correct. */
export function inputError(tool: string, issues: readonly InputIssue[]): ToolResult {
  const lines = issues.map(({ path, message }) => `- ${path} ${message}`);
  const text = [
    `"${tool}" was not called: its input does not fit the schema.`,
    ...lines,
    "Correct these places and call it again.",
  ].join("\n");
  return { text, isError: true };
}
