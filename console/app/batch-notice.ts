import type { Client } from "../../src/client/index.ts";
import type { Notice } from "./notice.ts";
import { plural } from "./words.ts";

type BatchAnswer = Awaited<ReturnType<Client["interactions"]["approveBatch"]>>;

/** The outcome of a batch, from the results of its calls. Green only when all of them ran. */
export function batchNotice({ items }: BatchAnswer): Notice {
  const counts = { ran: 0, waiting: 0, open: 0, unknown: 0, failed: 0, rejected: 0, refused: 0 };
  let look = "";
  for (const item of items) {
    const what = outcomeOf(item);
    counts[what] += 1;
    if (what === "failed" || what === "unknown" || what === "refused") look ||= item.id;
  }
  const { ran, waiting, open, unknown, failed, rejected, refused } = counts;
  const parts = [
    `${plural(ran, "call")} approved and executed`,
    ...(waiting > 0 ? [`${waiting} approved and waiting until work resumes`] : []),
    ...(open > 0 ? [`${open} not executed yet`] : []),
    ...(failed > 0 ? [`${failed} approved, but failed`] : []),
    ...(unknown > 0 ? [`${unknown} approved, but with unknown outcome`] : []),
    ...(rejected > 0 ? [`${rejected} rejected`] : []),
    ...(refused > 0 ? [`${refused} refused: check them again`] : []),
  ];
  const isBad = failed > 0 || unknown > 0 || refused > 0;
  const tone = isBad ? "danger" : waiting > 0 || open > 0 ? "warn" : "ok";
  return { text: `${parts.join(", ")}.`, tone, id: look };
}

function outcomeOf(item: BatchAnswer["items"][number]) {
  if (item.outcome !== "approved") return item.outcome;
  const { answers, missing, interaction } = item.approved;
  if (missing.length > 0) return "open";
  if (answers.some(({ answer }) => answer === "failed" || answer === "denied")) return "failed";
  if (answers.some(({ answer }) => answer === "unknown")) return "unknown";
  if (answers.every(({ answer }) => answer === "done")) return "ran";
  // Kept under its own id during a stop; one that went back to review waits under another.
  const isKept = answers.some(
    (one) => one.answer === "pending" && one.decisionId === interaction.decisionId,
  );
  return isKept ? "waiting" : "open";
}
