// Found by a hundred restore drills: an older copy that is written to must not be taken for the newer one after a while.

import { copyFileSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { createGate } from "../../src/gate/create-gate.ts";
import { afterRestore } from "../../src/gate/restore.ts";
import { allowAlways } from "../../src/gate/review.ts";
import { NO_RULES } from "../../src/policy/policy.ts";
import { sqliteStore } from "../../src/store/sqlite/index.ts";
import { defineTool } from "../../src/tools/define-tool.ts";
import { sampleVerdictValidator } from "../support/validators.ts";

test("however much is written to an older copy, nothing is executed until an operator confirms the restore [T37 G21 I27]", async () => {
  const folder = mkdtempSync(path.join(tmpdir(), "sallyport-rolled-back-"));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const [file, copy] = [path.join(folder, "store.db"), path.join(folder, "copy.db")];
  const effects: string[] = [];
  const pay = defineTool({
    name: "world.pay",
    description: "Pays.",
    input: { type: "object" },
    safety: { effect: "external" },
    execute: () => {
      effects.push("paid");
      return "paid";
    },
  });
  const open = () => {
    const store = sqliteStore({ file, epochFile: path.join(folder, "epoch") });
    const validators = {
      tech: sampleVerdictValidator("schema"),
      business: sampleVerdictValidator("limits"),
    };
    const parts = { tools: [pay], validators, guard: allowAlways, policy: NO_RULES };
    return { store, gate: createGate({ ...parts, store, tenant: "acme" }) };
  };
  /** A yes of a person, and what became of it. */
  const attempt = async ({ gate }: ReturnType<typeof open>): Promise<string> => {
    const session = gate.sessions.open({ agent: "agent:one" });
    const asked = await session.call({ callId: "c", tool: "world.pay", input: {} });
    if (asked.answer !== "pending") return asked.answer;
    const { hash } = await gate.interactions.get(asked.interactionId);
    const yes = gate.interactions.approve(asked.interactionId, { hash, by: "person:ada" });
    return yes.then(({ answers }) => String(answers[0]?.answer)).catch(({ code }) => String(code));
  };
  const first = open();
  expect(await attempt(first)).toBe("done");
  await first.store.close();
  copyFileSync(file, copy);
  const second = open();
  expect(await attempt(second)).toBe("done");
  await second.store.close();
  for (const end of ["-wal", "-shm"]) rmSync(`${file}${end}`, { force: true });
  copyFileSync(copy, file);
  for (let restart = 0; restart < 3; restart += 1) {
    const again = open();
    for (let n = 0; n < 3; n += 1) expect(await attempt(again)).toBe("store_rolled_back");
    await again.store.close();
  }
  expect(effects).toHaveLength(2);
  const restored = open();
  await afterRestore(restored.store, { epoch: "second-life", by: "person:op" });
  await restored.gate.killSwitch.resume("looked at", { actor: "person:op" });
  expect(await attempt(restored)).toBe("done");
  await restored.store.close();
  const later = open();
  expect(await attempt(later)).toBe("done");
  await later.store.close();
  expect(effects).toHaveLength(4);
});
