import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import type { Validator } from "sallyport";
import { defineTool } from "sallyport/tools";
import { z } from "zod";

/** The production system of this story: a few invoices, and how often money was sent. */
export function makeShop() {
  const folder = mkdtempSync(path.join(tmpdir(), "sallyport-agent-"));
  process.on("exit", () => rmSync(folder, { recursive: true, force: true }));
  const invoices = [
    { id: "INV-7", cents: 4_900, charged: 2 },
    { id: "INV-8", cents: 1_200, charged: 1 },
    { id: "INV-9", cents: 8_000, charged: 2 },
  ];
  const refunded = new Set<string>();
  let calls = 0;
  const list = defineTool({
    name: "invoices.list",
    description: "Lists all invoices with how often each was charged.",
    input: z.strictObject({}),
    safety: { effect: "read" },
    permissionClass: "readonly",
    execute: () => ({ text: JSON.stringify(invoices) }),
  });
  const refund = defineTool({
    name: "invoices.refund",
    description: "Sends the money of one charge back.",
    input: z.strictObject({ invoice: z.string(), reason: z.string() }),
    safety: { effect: "external" },
    dryRun: ({ input }) => `refunds ${input.invoice}`,
    execute({ input: { invoice } }) {
      if (!invoices.some(({ id }) => id === invoice)) return { text: "unknown", isError: true };
      calls += 1;
      refunded.add(invoice);
      return { text: `refunded ${invoice}` };
    },
  });
  return {
    file: path.join(folder, "sallyport.db"),
    tools: [list, refund],
    refunded,
    calls: () => calls,
  };
}

/** Both validators approve everything in this story, so that people decide. */
export const agree: Validator = {
  name: "agree",
  review: () => ({
    approved: true,
    score: 1,
    severity: "",
    reason: "left to people",
    validator: "agree",
    policyVersion: "1",
  }),
};
