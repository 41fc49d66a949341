import { expect, test } from "vitest";
import { defineTool } from "./define-tool.ts";
import { auditOperationOf, guessOperation } from "./tool.ts";

function tool(name: string, auditOperation?: string) {
  const declared = auditOperation === undefined ? {} : { auditOperation };
  return defineTool({
    name,
    description: "d",
    input: { type: "object" },
    ...declared,
    execute: () => "",
  });
}

test.each(["write", "edit", "read", "execute", "delete", "invoke", "überweisen", "x".repeat(99)])(
  "the audit operation is the declared one, whatever the name: %s [S2-44]",
  (operation) => {
    expect(auditOperationOf(tool("files.delete", operation))).toBe(operation);
  },
);

test.each([
  ["files.read", "read"],
  ["files.readFile", "read"],
  ["list_users", "read"],
  ["SearchIssues", "read"],
  ["files.write", "write"],
  ["create-issue", "write"],
  ["mail.send", "write"],
  ["doc.update", "edit"],
  ["file.rename", "edit"],
  ["bash", "execute"],
  ["run_tests", "execute"],
  ["db.drop_table", "delete"],
  ["removeUser", "delete"],
  ["read_and_delete", "delete"],
  ["get_or_create", "write"],
  ["billing.refund", "invoke"],
  ["spreadsheet", "invoke"],
  ["target.settings", "invoke"],
])("without one it is guessed from the name: %s is %s [S2-45 I-27]", (name, operation) => {
  expect(guessOperation(name)).toBe(operation);
  expect(auditOperationOf(tool(name))).toBe(operation);
});

test("a third-party tool sets its operation by declaring it [S2-46]", () => {
  expect(auditOperationOf(tool("acme.frobnicate"))).toBe("invoke");
  expect(auditOperationOf(tool("acme.frobnicate", "frobnicate"))).toBe("frobnicate");
});

test("an empty declaration counts as missing [S2-45]", () => {
  expect(auditOperationOf(tool("db.drop_table", ""))).toBe("delete");
});
