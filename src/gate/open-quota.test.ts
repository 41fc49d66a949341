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

test("a sender whose questions were closed elsewhere is not refused, however soon it comes back to its limit", async () => {
  const terms = { what: "questions", hint: "wait", most: 20, mostBytes: 1_000, now: () => 0 };
  const quota = openQuota({ ...terms, isOpen: async () => false });
  for (let n = 0; n < 100; n += 1) {
    await quota.check("agent:one", 1);
    quota.opened("agent:one", `q-${n}`, 1);
  }
});

test("a sender with everything open makes the gate look once, not at each of its attempts", async () => {
  let looks = 0;
  const quota = quotaOf(async () => {
    looks += 1;
    return true;
  });
  for (let n = 0; n < 10; n += 1) {
    await expect(quota.check("agent:one", 1)).rejects.toMatchObject({ code: "quota_exceeded" });
  }
  expect(looks).toBe(2);
});

test("what is closed through this process makes room without a look", async () => {
  const quota = quotaOf(async () => {
    throw new Error("nobody has to look");
  });
  quota.closed("a");
  await quota.check("agent:one", 1);
  expect(quota.has("agent:one", "a")).toBe(false);
});
