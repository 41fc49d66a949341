import { expect, test } from "vitest";
import { openQuota } from "./propose.ts";

function quotaOf(isOpen: (id: string) => Promise<boolean>) {
  const terms = { what: "questions", hint: "wait", most: 2, mostBytes: 1_000, now: () => 0 };
  const quota = openQuota({ ...terms, isOpen });
  quota.opened("agent:one", "a", 1);
  quota.opened("agent:one", "b", 1);
  return quota;
}

test("concurrent callers at the limit wait for one look, and none is refused for what is closed", async () => {
  let looks = 0;
  const quota = quotaOf(async () => {
    looks += 1;
    return false;
  });
  await Promise.all([1, 2, 3].map(() => quota.check("agent:one", 1)));
  expect(looks).toBe(2);
});

test("a caller at the limit is refused while everything it opened is open", async () => {
  const quota = quotaOf(async () => true);
  await expect(quota.check("agent:one", 1)).rejects.toMatchObject({ code: "quota_exceeded" });
});
