import { expect, test } from "vitest";
import { createStaging } from "../../src/gate/review.ts";
import type { Decision } from "../../src/model/decision.ts";
import { START } from "../../src/store/conformance/index.ts";
import type { DecisionStore } from "../../src/store/decisions.ts";
import { manualClock, toIso } from "../../src/util/clock.ts";
import { forEachStore } from "../support/for-each-store.ts";
import { diffOf, refusal, scripted, scriptedGuard, stagingOver } from "../support/staging.ts";

forEachStore("stage", (open) => {
  test("builds a fresh pending_tech record from session and diff and stores it [S0-25]", async () => {
    const store = await open();
    const staged = await stagingOver(store).stage("session-1", diffOf(), { actor: "agent:7" });
    expect(staged).toMatchObject({ state: "pending_tech", sessionId: "session-1", diff: diffOf() });
    expect(staged.id).not.toBe("");
    expect(await store.decisions.get(staged.id)).toEqual(staged);
    const [entry] = await store.store.tenant("acme").audit.read({ after: 0, limit: 1 });
    expect(entry?.actor).toBe("agent:7");
  });

  test("hands the store's refusals on with their codes [S0-25 S0-17]", async () => {
    const store = await open();
    const staging = stagingOver(store);
    await refusal("illegal_transition", staging.stage("", diffOf()));
    const large = diffOf({ raw: new Uint8Array(1024 * 1024 + 1) });
    await refusal("payload_too_large", staging.stage("session-1", large));
    expect(await store.decisions.list()).toEqual([]);
  });

  test("record metadata mirrors the diff's, and guards see it after the store had it [S0-26]", async () => {
    const guard = scriptedGuard(true);
    const staging = stagingOver(await open(), { guard });
    const metadata = { tenant: "acme", upstream: ["a"], nested: { n: 1 } };
    const { id, metadata: mirrored } = await staging.stage("session-1", diffOf({ metadata }));
    expect(mirrored).toEqual(metadata);
    await staging.validateTech(id);
    expect(guard.asked[0]?.decision.metadata).toEqual(metadata);
  });

  test("both tiers see the same diff, though the first one scribbles on it [S0-12]", async () => {
    const vandal = scripted("vandal");
    const tech = {
      name: "vandal",
      review: (diff: ReturnType<typeof diffOf>) => {
        const verdict = vandal.review(structuredClone(diff));
        diff.raw.fill(0);
        Object.assign(diff.metadata, { tenant: "globex", extra: true });
        Object.assign(diff, { sourceTool: "other" });
        return verdict;
      },
    };
    const business = scripted("biz-v");
    const guard = scriptedGuard(true);
    const store = await open();
    const staging = stagingOver(store, { tech, business, guard });
    const { id } = await staging.stage("session-1", diffOf());
    await staging.validateTech(id);
    expect(guard.asked[0]?.decision.diff, "nor does the guard see the scribbles").toEqual(diffOf());
    const approved = await staging.validateBiz(id);
    const shown = ({ sourceTool, raw, metadata }: ReturnType<typeof diffOf>) => ({
      sourceTool,
      raw,
      metadata,
    });
    expect(vandal.seen.map(shown)).toEqual([diffOf()]);
    expect(business.seen.map(shown)).toEqual([diffOf()]);
    expect(approved.diff).toEqual(diffOf());
    expect(approved.metadata).toEqual(diffOf().metadata);
  });

  test("reviewers get the very bytes, whatever they are [S0-11 S0-12]", async () => {
    const raw = Uint8Array.of(0, 255, 0xc3, 0x28, 0x7b);
    const [tech, business] = [scripted("tech-v"), scripted("biz-v")];
    const staging = stagingOver(await open(), { tech, business });
    const { id } = await staging.stage("session-1", diffOf({ raw }));
    await staging.validateTech(id);
    await staging.validateBiz(id);
    expect(tech.seen[0]?.raw).toEqual(raw);
    expect(business.seen[0]?.raw).toEqual(raw);
  });
});

test("the draft has the current UTC time as both of its times [S0-14]", async () => {
  const drafts: Decision[] = [];
  const store = {
    stage: async (draft: Decision) => {
      drafts.push(draft);
      return draft;
    },
  } as unknown as DecisionStore;
  const clock = manualClock(START);
  const staging = createStaging({
    store,
    tech: scripted("t"),
    business: scripted("b"),
    guard: scriptedGuard(true),
    clock,
  });
  await staging.stage("session-1", diffOf());
  clock.advance(1_234);
  await staging.stage("session-1", diffOf());
  expect(drafts.map(({ createdAt }) => createdAt)).toEqual([toIso(START), toIso(START + 1_234)]);
  for (const draft of drafts) expect(draft.updatedAt).toBe(draft.createdAt);
});
