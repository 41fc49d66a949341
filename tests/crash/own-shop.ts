// What a user would hand to `sallyport crashkit --config`: tools of their own, and how to see what reached their system.

import { createHash } from "node:crypto";
import { appendFileSync, existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import { allowAlways, SallyportError, type Validator } from "sallyport";
import type { CrashKitHooks, Effect } from "sallyport/crashkit";
import { defineTool } from "sallyport/tools";

const folder = process.env["SHOP_FOLDER"] ?? "";
const ledger = path.join(folder, "orders.jsonl");
/** This shop says that it takes a key once, and does not. */
const isCareless = process.env["SHOP_IS_CARELESS"] === "yes";

function takeOrder(input: string, key: string, fence: number): void {
  mkdirSync(folder, { recursive: true });
  const name = createHash("sha256").update(key).digest("hex");
  const isFirst = isNew(path.join(folder, name));
  const inputSha256 = createHash("sha256").update(input).digest("hex");
  const applied = isFirst || isCareless;
  const effect: Effect = { kind: "keyed", key, fence, inputSha256, applied, at: Date.now() };
  appendFileSync(ledger, `${JSON.stringify(effect)}\n`);
  if (isFirst) throw new SallyportError("outcome_unknown", { tool: "shop.order" });
}

/** One process at most finds that a file was not there. */
function isNew(file: string): boolean {
  try {
    writeFileSync(file, "", { flag: "wx" });
    return true;
  } catch {
    return false;
  }
}

const order = defineTool({
  name: "shop.order",
  description: "Orders so many pieces. The first answer is always lost on the way.",
  input: { type: "object", properties: { pieces: { type: "integer" } }, required: ["pieces"] },
  safety: { effect: "external", reversible: false },
  idempotency: "keyed",
  execute({ input, idempotencyKey, fence }) {
    takeOrder(JSON.stringify(input), idempotencyKey, fence);
    return "ordered";
  },
});

const yes: Validator = {
  name: "shop",
  review: () => ({
    approved: true,
    score: 1,
    severity: "",
    reason: "in stock",
    validator: "shop",
    policyVersion: "1",
  }),
};

// biome-ignore lint/style/noDefaultExport: that is how `serve` and the kit read a module.
export default {
  tools: [order],
  validators: { tech: yes, business: yes },
  guard: allowAlways,
  policy: {
    version: "1",
    rules: [{ id: "orders", effect: "allow", tool: "shop.order", reason: "small orders" }],
  },
};

export const crashkit: CrashKitHooks = {
  calls: (dice) => [{ tool: "shop.order", input: { pieces: 1 + dice.below(9) } }],
  effects: () =>
    existsSync(ledger)
      ? readFileSync(ledger, "utf8")
          .split("\n")
          .filter(Boolean)
          .map((line) => JSON.parse(line))
      : [],
  mayRunAlone: (tool) => tool === "shop.order",
};
