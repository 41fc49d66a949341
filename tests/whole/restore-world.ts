// Production for the restore drill: a file outside of everything that is backed up, in which every effect leaves a line.

import { appendFileSync, existsSync, readFileSync } from "node:fs";
import path from "node:path";
import {
  allowAlways,
  createGate,
  type Gate,
  NO_RULES,
  type Store,
  type Validator,
} from "sallyport";
import { defineTool } from "sallyport/tools";

export const TENANT = "acme";
export const ADA = "person:ada";

const yes: Validator = {
  name: "agree",
  review: () => ({
    approved: true,
    score: 1,
    severity: "",
    reason: "",
    validator: "agree",
    policyVersion: "1",
  }),
};

/** Where everything of one drill lies. */
export function placesIn(folder: string) {
  const of = (name: string) => path.join(folder, name);
  return {
    data: of("data"),
    ledger: of("ledger"),
    yeses: of("yeses"),
    anchors: of("anchors"),
    key: of("key"),
    copy: of("copy.db"),
  };
}

/** Effects take a moment, so that some are always on their way. */
export function writeTool(ledger: string, kind: "plain" | "keyed") {
  return defineTool({
    name: `world.${kind}`,
    description: "Writes a line.",
    input: {
      type: "object",
      properties: { n: { type: "string" } },
      required: ["n"],
      additionalProperties: false,
    },
    safety: { effect: "external" },
    ...(kind === "keyed" ? { idempotency: "keyed" as const } : {}),
    async execute({ input }) {
      appendFileSync(ledger, `${input["n"]}\n`);
      await new Promise((resolve) => setTimeout(resolve, 12));
      return "written";
    },
  });
}

export function drillPort(store: Store, ledger: string, leaseMs = 200): Gate {
  return createGate({
    store,
    tenant: TENANT,
    tools: [writeTool(ledger, "plain"), writeTool(ledger, "keyed")],
    validators: { tech: yes, business: yes },
    guard: allowAlways,
    policy: NO_RULES,
    leaseMs,
  });
}

export function linesOf(file: string): readonly string[] {
  if (!existsSync(file)) return [];
  return readFileSync(file, "utf8").split("\n").slice(0, -1);
}

/** A person's yes, as their browser would still have it. */
export interface GivenYes {
  readonly id: string;
  readonly hash: string;
}
