import { expect, test } from "vitest";
import { isSallyportError } from "../../src/model/errors.ts";
import type { StandingRuleDraft } from "../../src/model/standing-rule.ts";
import { STANDING_RULES } from "../../src/model/standing-rule.ts";
import { matchesRule } from "../../src/policy/review-rules.ts";
import type { Values } from "../../src/store/engine.ts";
import type { Intent } from "../../src/store/operations.ts";
import { forEachStore } from "../support/for-each-store.ts";
import type { TestStore } from "../support/stores.ts";

const TENANT = "acme";
const ADA = { actor: "person:ada" };
const MINUTE = 60_000;
const DAY = 24 * 3_600_000;

const DRAFT: StandingRuleDraft = {
  tool: "billing.refund",
  definitionHash: "d".repeat(64),
  safetyClass: "reversible",
  destructive: false,
  needsExact: false,
  pattern: {
    invoice: { like: "INV-*" },
    cents: { atMost: 500 },
    note: { any: true, optional: true },
  },
  workingDirectory: "",
  reason: "small refunds are fine",
  forMs: MINUTE,
};

const CALL = {
  tool: DRAFT.tool,
  definitionHash: DRAFT.definitionHash,
  safetyClass: "reversible",
  needsExact: false,
  input: { invoice: "INV-7", cents: 500 },
  workingDirectory: "/srv",
  askers: ["agent:bot"],
};

const INTENT: Intent = {
  id: "op-1",
  sessionId: "session-1",
  messageId: "m-1",
  callId: "c-1",
  turn: 1,
  tool: DRAFT.tool,
  effect: "external",
  definitionHash: DRAFT.definitionHash,
  input: JSON.stringify(CALL.input),
  workingDirectory: "/srv",
  step: 0,
  undoOf: "",
  approval: undefined,
  leaseMs: 30_000,
  actor: "executor",
};

forEachStore("standing rules", (open) => {
  async function opened() {
    const world: TestStore = await open();
    const store = world.store.tenant(TENANT);
    const trail = async () =>
      (await store.audit.read({ after: 0, limit: 100 })).map(({ type }) => type);
    const started = async (over: Partial<Intent>) => {
      const answer = await store.operations.start({ ...INTENT, ...over });
      return answer.started ? "started" : answer.reason;
    };
    /** As a person with access to the database would: without the store and its checks. */
    const tampered = (id: string, set: Values) =>
      world.engine.commit(TENANT, {
        steps: [{ op: "update", table: STANDING_RULES, id, where: {}, set }],
        events: [{ type: "test.tampered", subject: id, session: "", actor: "test", data: {} }],
      });
    const other = world.store.tenant("other");
    return { ...world, store, other, rules: store.standingRules, trail, started, tampered };
  }

  test("a rule is made, read back as it was written and recorded in the trail", async () => {
    const { rules, store, clock } = await opened();
    const made = await rules.make({ ...DRAFT, reason: "why \ud800 not" }, ADA);
    expect(made).toMatchObject({
      tool: DRAFT.tool,
      definitionHash: DRAFT.definitionHash,
      pattern: DRAFT.pattern,
      reason: "why \ud800 not",
      status: "active",
      madeBy: "person:ada",
      endedBy: "",
      endReason: "",
      version: 1,
    });
    expect(Date.parse(made.expiresAt) - Date.parse(made.createdAt)).toBe(MINUTE);
    expect(await rules.get(made.id)).toEqual(made);
    expect(matchesRule(made, { ...CALL, now: clock.now() })).toBe(true);
    const [entry] = await store.audit.read({ after: 0, limit: 2 });
    expect(entry).toMatchObject({ type: "standing_rule.made", subject: made.id, actor: ADA.actor });
    expect(JSON.parse(entry?.data ?? "{}")).toMatchObject({
      tool: DRAFT.tool,
      pattern: DRAFT.pattern,
      for_ms: MINUTE,
    });
  });

  test("no rule is made for irreversible or destructive tools, nor a wide one for commands [R4]", async () => {
    const { rules, trail } = await opened();
    const odd: Partial<StandingRuleDraft>[] = [
      { safetyClass: "irreversible" },
      { destructive: true },
      { forMs: 90 * DAY + 1 },
      { reason: " " },
      { needsExact: true, workingDirectory: "/srv" },
      { needsExact: true, pattern: { command: { equals: "ls" } } },
      { pattern: { cents: {} as never } },
    ];
    for (const over of odd) {
      const error = await rules.make({ ...DRAFT, ...over }, ADA).catch((thrown: unknown) => thrown);
      expect(isSallyportError(error, "invalid_input"), JSON.stringify(over)).toBe(true);
    }
    await expect(rules.make({ ...DRAFT, destructive: true }, ADA)).rejects.toThrow(/destroys data/);
    await expect(rules.make(DRAFT, { actor: "" })).rejects.toThrow(/actor/);
    expect(await rules.list()).toEqual([]);
    expect(await trail()).toEqual([]);
    await rules.make({ ...DRAFT, forMs: 90 * DAY }, ADA);
  });

  test("an intent under a living rule is written, and counted", async () => {
    const { rules, started, trail } = await opened();
    const rule = await rules.make(DRAFT, ADA);
    const holds = [rules.holdOf(rule)];
    expect(await started({ holds })).toBe("started");
    expect(await trail()).toEqual(["standing_rule.made", "operation.started"]);
    // One that is not written does not count.
    expect(await started({ holds })).toBe("used_up");
    const more = ["op-2", "op-3"].map((id) => started({ id, holds }));
    expect(await Promise.all(more)).toEqual(["started", "started"]);
    expect(await rules.get(rule.id)).toEqual({ ...rule, uses: 3 });
  });

  test("a proposal allows nothing until another person confirms it, once and in time [T41]", async () => {
    const { rules, started, trail, clock } = await opened();
    const proposal = await rules.propose(DRAFT, ADA);
    expect(proposal).toMatchObject({ status: "proposed", confirmedBy: "", madeBy: ADA.actor });
    expect(matchesRule(proposal, { ...CALL, now: clock.now() })).toBe(false);
    expect(await started({ holds: [rules.holdOf(proposal)] })).toBe("rule_ended");
    expect(await rules.list({ status: "active" })).toEqual([]);
    for (const actor of [ADA.actor, "PERSON:ada"]) {
      await expect(rules.confirm(proposal.id, { actor })).rejects.toThrow(/no one can loosen/);
    }
    const many = ["person:bob", "person:cyd", "person:dan"].map((actor) =>
      rules.confirm(proposal.id, { actor }).then(
        ({ confirmedBy }) => confirmedBy,
        () => "",
      ),
    );
    const [first] = (await Promise.all(many)).filter((name) => name !== "");
    const rule = await rules.get(proposal.id);
    expect(rule).toMatchObject({ status: "active", confirmedBy: first, version: 2 });
    expect(rule.expiresAt).toBe(proposal.expiresAt);
    expect(await started({ holds: [rules.holdOf(proposal)] })).toBe("rule_ended");
    expect(await started({ holds: [rules.holdOf(rule)] })).toBe("started");
    // Who confirmed it has a hand in it as well as who wrote it.
    for (const asker of [first ?? "", ADA.actor]) {
      expect(matchesRule(rule, { ...CALL, askers: [asker], now: clock.now() })).toBe(false);
    }
    expect(await trail()).toEqual([
      "standing_rule.proposed",
      "standing_rule.made",
      "operation.started",
    ]);
    const late = await rules.propose(DRAFT, ADA);
    const withdrawn = await rules.propose(DRAFT, ADA);
    await rules.revoke(withdrawn.id, "never mind", ADA);
    await clock.advance(MINUTE + 1);
    for (const { id } of [late, withdrawn, rule]) {
      const error = await rules.confirm(id, { actor: "person:bob" }).catch((thrown) => thrown);
      expect(isSallyportError(error, "illegal_transition")).toBe(true);
    }
    expect((await rules.list({ status: "expired" })).map(({ id }) => id)).toEqual([
      rule.id,
      late.id,
    ]);
  });

  test("a rule that is revoked between the read and the intent allows nothing", async () => {
    const { rules, store, started, trail, clock } = await opened();
    const rule = await rules.make(DRAFT, ADA);
    expect(matchesRule(rule, { ...CALL, now: clock.now() })).toBe(true);
    const revoked = await rules.revoke(rule.id, "not any more", { actor: "person:bob" });
    expect(revoked).toMatchObject({
      status: "revoked",
      endedBy: "person:bob",
      endReason: "not any more",
      version: 2,
    });
    expect(await started({ holds: [rules.holdOf(rule)] })).toBe("rule_ended");
    expect(await store.operations.listBySession("session-1")).toEqual([]);
    expect(await trail()).toEqual(["standing_rule.made", "standing_rule.revoked"]);
    // Nor does the revoked rule itself.
    expect(matchesRule(revoked, { ...CALL, now: clock.now() })).toBe(false);
    expect(await started({ holds: [rules.holdOf(revoked)] })).toBe("rule_ended");
  });

  test("of revocations and intents at the same moment, none is written after the revocation", async () => {
    const { rules, store, started } = await opened();
    const rule = await rules.make(DRAFT, ADA);
    const holds = [rules.holdOf(rule)];
    const start = (n: number) => started({ id: `op-${n}`, holds });
    // The first entry of a tenant also makes its key, and would let the revocation overtake it.
    expect(await started({ id: "op-first" })).toBe("started");
    const half = Array.from({ length: 20 }, (_, n) => start(n));
    const revoking = rules.revoke(rule.id, "stop", ADA);
    const rest = Array.from({ length: 20 }, (_, n) => start(20 + n));
    const answers = await Promise.all([...half, ...rest]);
    await revoking;
    expect(new Set(answers).isSubsetOf(new Set(["started", "rule_ended"]))).toBe(true);
    expect(await start(99)).toBe("rule_ended");
    const types = (await store.audit.read({ after: 0, limit: 100 })).map(({ type }) => type);
    expect(types.slice(types.indexOf("standing_rule.revoked") + 1)).toEqual([]);
    const count = answers.filter((answer) => answer === "started").length;
    expect(count).toBeGreaterThan(0);
    expect(types.filter((type) => type === "operation.started")).toHaveLength(count + 1);
  });

  test("a rule ends by the store's clock, whatever a process believes [T34]", async () => {
    const { rules, started, clock } = await opened();
    const rule = await rules.make(DRAFT, ADA);
    const holds = [rules.holdOf(rule)];
    const slow = Date.parse(rule.createdAt);
    clock.set(Date.parse(rule.expiresAt));
    expect(await started({ id: "op-last", holds })).toBe("started");
    expect(await rules.list({ status: "active" })).toHaveLength(1);
    expect(await rules.list({ status: "expired" })).toHaveLength(0);
    clock.advance(1);
    expect(matchesRule(rule, { ...CALL, now: slow })).toBe(true);
    expect(await started({ id: "op-late", holds })).toBe("rule_ended");
    expect(await rules.list({ status: "active" })).toHaveLength(0);
    expect(await rules.list({ status: "expired" })).toHaveLength(1);
    // I13: nor when the clock goes back, since time in the trail does not.
    await rules.make({ ...DRAFT, tool: "other" }, ADA);
    clock.set(Date.parse(rule.expiresAt));
    expect(await started({ id: "op-back", holds })).toBe("rule_ended");
    clock.set(slow);
    await expect(started({ id: "op-back", holds })).rejects.toThrow(/clock/);
  });

  test("a rule of another version, another definition or another tool does not allow the call", async () => {
    const { rules, started, tampered } = await opened();
    const rule = await rules.make(DRAFT, ADA);
    const under = (over: object) => started({ holds: [rules.holdOf({ ...rule, ...over })] });
    expect(await under({ version: 2 })).toBe("rule_ended");
    expect(await under({ definitionHash: "e".repeat(64) })).toBe("rule_ended");
    expect(await under({ tool: "billing.payout" })).toBe("rule_ended");
    expect(await under({ id: "no-such-rule" })).toBe("rule_ended");
    await tampered(rule.id, { version: { plus: 1 }, pattern: '{"cents":{"any":true}}' });
    expect(await under({})).toBe("rule_ended");
    expect(await started({ holds: [rules.holdOf(await rules.get(rule.id))] })).toBe("started");
  });

  test("a rule of one tenant has no effect on another [T7]", async () => {
    const { rules, other } = await opened();
    const rule = await rules.make(DRAFT, ADA);
    const answer = await other.operations.start({ ...INTENT, holds: [rules.holdOf(rule)] });
    expect(answer).toEqual({ started: false, reason: "rule_ended" });
    expect(await other.standingRules.list()).toEqual([]);
    await expect(other.standingRules.get(rule.id)).rejects.toThrow(/not_found/);
    await expect(other.standingRules.revoke(rule.id, "", ADA)).rejects.toThrow(/not_found/);
    expect((await rules.get(rule.id)).status).toBe("active");
  });

  test("a second revocation changes nothing: the first reason stays, with one audit entry", async () => {
    const { rules, trail } = await opened();
    const rule = await rules.make(DRAFT, ADA);
    const [first, ...rest] = await Promise.all(
      ["one", "two", "three"].map((reason) => rules.revoke(rule.id, reason, ADA)),
    );
    for (const other of rest) expect(other).toEqual(first);
    expect(await trail()).toEqual(["standing_rule.made", "standing_rule.revoked"]);
    await expect(rules.revoke("nothing", "", ADA)).rejects.toThrow(/not_found/);
    await expect(rules.revoke(rule.id, "", { actor: "" })).rejects.toThrow(/actor/);
  });

  test("lists by tool and status, oldest first, in pages", async () => {
    const { rules } = await opened();
    const a = await rules.make(DRAFT, ADA);
    const b = await rules.make({ ...DRAFT, tool: "mail.draft" }, ADA);
    const c = await rules.make(DRAFT, ADA);
    await rules.revoke(a.id, "over", ADA);
    const ids = async (...query: Parameters<typeof rules.list>) =>
      (await rules.list(...query)).map(({ id }) => id);
    expect(await ids()).toEqual([a.id, b.id, c.id]);
    expect(await ids({ tool: DRAFT.tool })).toEqual([a.id, c.id]);
    expect(await ids({ status: "revoked" })).toEqual([a.id]);
    expect(await ids({ tool: DRAFT.tool, status: "active" })).toEqual([c.id]);
    expect(await ids({ after: a.ord, limit: 1 })).toEqual([b.id]);
  });

  test("a row that was widened from outside is damaged_record and allows nothing", async () => {
    const { rules, engine, tampered } = await opened();
    const rule = await rules.make(DRAFT, ADA);
    const later = Date.parse(rule.createdAt) + 91 * DAY;
    await engine.backdate(TENANT, STANDING_RULES, rule.id, "expires_at", later);
    await expect(rules.get(rule.id)).rejects.toThrow(/damaged_record.*expires_at/);
    const odd = await rules.make(DRAFT, ADA);
    for (const pattern of ['{"cents":{}}', "[]", "not json"]) {
      await tampered(odd.id, { pattern });
      await expect(rules.get(odd.id)).rejects.toThrow(/damaged_record.*pattern/);
    }
  });
});
