// What a user would hand to `sallyport crashkit --config`: tools of their own, and how to see what reached their system.

import { createHash, randomUUID } from "node:crypto";
import {
  appendFileSync,
  existsSync,
  linkSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import path from "node:path";
import { allowAlways, SallyportError, type Validator } from "sallyport";
import type { CrashKitHooks, LedgerEntry } from "sallyport/crashkit";
import { defineTool } from "sallyport/tools";

const folder = process.env["SHOP_FOLDER"] ?? "";
const repeats = path.join(folder, "repeats.jsonl");
const TAKEN = ".taken.json";
/** This shop says that it takes a key once, and does not. */
const isCareless = process.env["SHOP_IS_CARELESS"] === "yes";

function takeOrder(input: string, key: string, fence: number): void {
  mkdirSync(folder, { recursive: true });
  const inputSha256 = createHash("sha256").update(input).digest("hex");
  const effect: LedgerEntry = {
    kind: "keyed",
    key,
    fence,
    inputSha256,
    applied: true,
    at: Date.now(),
  };
  const isFirst = isTaken(key, effect);
  if (isFirst) throw new SallyportError("outcome_unknown", { tool: "shop.order" });
  appendFileSync(repeats, `${JSON.stringify({ ...effect, applied: isCareless })}\n`);
}

/** An order is on the books under its key, whole, or it is not, whenever the process is killed; the first one counts. */
function isTaken(key: string, effect: LedgerEntry): boolean {
  const name = path.join(folder, createHash("sha256").update(key).digest("hex"));
  const draft = `${name}.${randomUUID()}`;
  writeFileSync(draft, JSON.stringify(effect));
  try {
    linkSync(draft, `${name}${TAKEN}`);
    return true;
  } catch {
    return false;
  } finally {
    rmSync(draft);
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
  effects: () => [...taken(), ...linesOf(repeats)].map((line) => JSON.parse(line)),
  mayRunAlone: (tool) => tool === "shop.order",
};

function taken(): readonly string[] {
  if (!existsSync(folder)) return [];
  const files = readdirSync(folder).filter((name) => name.endsWith(TAKEN));
  return files.map((name) => readFileSync(path.join(folder, name), "utf8"));
}

function linesOf(file: string): readonly string[] {
  return existsSync(file) ? readFileSync(file, "utf8").split("\n").filter(Boolean) : [];
}
