import { z } from "zod";
import { instant, list } from "./common.ts";

/** What must be true in the end, and which evidence proves it. */
export const promise = z.object({
  id: z.string(),
  statement: z.string(),
  evidence: list(z.object({ name: z.string(), command: z.string().optional() })),
});

export const evidence = z.object({
  promiseId: z.string(),
  need: z.string(),
  command: z.string(),
  exitCode: z.number(),
  keyOutput: z.string(),
  conclusion: z.string(),
  green: z.boolean(),
  sessionId: z.string(),
  at: instant,
});
