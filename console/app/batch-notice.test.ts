import { expect, test } from "vitest";
import { batchNotice } from "./batch-notice.ts";

type Answer = Parameters<typeof batchNotice>[0];

function approved(id: string, answers: readonly object[], missing: readonly string[] = []) {
  return {
    id,
    outcome: "approved",
    approved: { interaction: { decisionId: id }, answers, missing },
  };
}

function noticeOf(...items: readonly object[]) {
  return batchNotice({ items } as unknown as Answer);
}

test("batch notice: counts the outcomes, and is green only when every call ran [W1b]", () => {
  const ran = approved("a", [{ answer: "done" }]);
  expect(noticeOf(ran, ran)).toEqual({
    text: "2 calls approved and executed.",
    tone: "ok",
    id: "",
  });
  const failed = approved("b", [{ answer: "failed" }]);
  expect(noticeOf(ran, failed)).toEqual({
    text: "1 call approved and executed, 1 approved, but failed.",
    tone: "danger",
    id: "b",
  });
  const kept = approved("c", [{ answer: "pending", decisionId: "c" }]);
  expect(noticeOf(kept, kept)).toMatchObject({
    text: "0 calls approved and executed, 2 approved and waiting until work resumes.",
    tone: "warn",
  });
  const back = approved("d", [{ answer: "pending", decisionId: "other" }]);
  const half = approved("e", [], ["second"]);
  expect(noticeOf(back, half)).toMatchObject({
    text: "0 calls approved and executed, 2 not executed yet.",
    tone: "warn",
  });
  const lost = approved("f", [{ answer: "unknown" }]);
  expect(noticeOf(ran, lost)).toEqual({
    text: "1 call approved and executed, 1 approved, but with unknown outcome.",
    tone: "danger",
    id: "f",
  });
  const others = noticeOf({ id: "g", outcome: "rejected" }, { id: "h", outcome: "refused" });
  expect(others).toEqual({
    text: "0 calls approved and executed, 1 rejected, 1 refused: check them again.",
    tone: "danger",
    id: "h",
  });
});
