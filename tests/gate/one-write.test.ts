// What is decided together is written together: a proposal that is reviewed promptly, in one transaction.

import { setTimeout as sleep } from "node:timers/promises";
import { expect, test } from "vitest";
import type { Gate } from "../../src/gate/create-gate.ts";
import type { AuditEntry } from "../../src/model/audit-entry.ts";
import type { Validator, Verdict } from "../../src/model/decision.ts";
import { SallyportError } from "../../src/model/errors.ts";
import type { Change } from "../../src/store/engine.ts";
import { type InboxWorld, onlyOpen, onStores, set, yes } from "../interactions/inbox-world.ts";
import { AGENT, decisionIdOf, isApproval, isIntent, PERSON } from "../support/port-world.ts";
import { sampleVerdictValidator, slowReview } from "../support/validators.ts";

const SESSION = { id: "s-1", agent: AGENT };

/** The changes that are written while `work` runs. */
async function writesOf({ tap }: InboxWorld, work: () => Promise<unknown>): Promise<Change[]> {
  const written: Change[] = [];
  tap.after = (change) => void written.push(change);
  await work().finally(() => {
    tap.after = () => {};
  });
  return written;
}

/** Holds every write until it is let go, so that whatever does not wait for it shows. */
function holdWrites({ tap }: InboxWorld): { readonly asked: Promise<void>; letGo(): void } {
  const asked = Promise.withResolvers<void>();
  const free = Promise.withResolvers<void>();
  tap.before = async () => {
    asked.resolve();
    await free.promise;
  };
  return {
    asked: asked.promise,
    letGo() {
      tap.before = () => {};
      free.resolve();
    },
  };
}

/** Longer than anything takes that does not wait. */
const HELD_MS = 50;

async function entriesOf(gate: Gate): Promise<readonly AuditEntry[]> {
  return gate.audit.read({ after: 0, limit: 100 });
}

/** What an entry says, without what differs from run to run: ids, nonces and the hashes that they are part of. */
function saidIn({ type, actor, session, data }: AuditEntry) {
  const varying = /"(?:[0-9a-f-]{36}|[0-9a-f]{64}|[0-9a-f-]{36}\.0)"/g;
  return { type, actor, session, data: data?.replaceAll(varying, '"…"') };
}

function refusing(name: string): Validator {
  return { ...sampleVerdictValidator(name), review: () => ({ ...NO, validator: name }) };
}

const NO: Verdict = {
  approved: false,
  score: 0,
  severity: "block",
  reason: "not like this",
  validator: "",
  policyVersion: "1",
};

const MADE = ["decision.staged", "decision.reviewed", "decision.previewed", "interaction.opened"];

onStores(
  "a proposal",
  (open) => {
    test("that is reviewed promptly is one write, with the records and entries of one that was not", async () => {
      const prompt = await open();
      const slow = await open();
      const asked: string[] = [];
      const writes = await writesOf(prompt, async () => {
        asked.push(decisionIdOf(await prompt.gate.sessions.open(SESSION).call(set("a", 1))));
      });
      expect(writes).toHaveLength(1);
      const long = await writesOf(slow, async () => {
        const gate = slow.again(slowReview());
        asked.push(decisionIdOf(await gate.sessions.open(SESSION).call(set("a", 1))));
      });
      expect(long.length).toBeGreaterThan(1);
      const [once, thrice] = await Promise.all([prompt, slow].map(({ gate }) => entriesOf(gate)));
      expect(once?.map(({ type }) => type)).toEqual(MADE);
      expect(once?.map(saidIn)).toEqual(thrice?.map(saidIn));
      const [a, b] = await Promise.all(
        [prompt, slow].map(async ({ gate }, at) => {
          const id = asked[at] ?? "";
          const { id: _, diff, ...decision } = await gate.decisions.get(id);
          const { hash, ...question } = await gate.interactions.get(id);
          const shown = await gate.interactions.shown(id);
          expect(shown?.hash).toBe(hash);
          const preview = { ...shown?.preview, decisionId: "", nonce: "" };
          const raw = new TextDecoder().decode(diff.raw);
          return { raw, decision, question: { ...question, id: "", decisionId: "" }, preview };
        }),
      );
      expect(a).toEqual(b);
      expect(a?.decision).toMatchObject({ state: "pending_ml", techVerdict: { approved: true } });
      await yes(prompt.gate, asked[0] ?? "");
      await yes(slow.gate, asked[1] ?? "");
      expect(prompt.effects).toEqual(slow.effects);
    });

    for (const tier of ["tech", "business"] as const) {
      test(`that the ${tier} review refuses is one write too, with the verdict of each tier`, async () => {
        const world = await open();
        const validators = {
          tech: sampleVerdictValidator("schema"),
          business: sampleVerdictValidator("limits"),
          [tier]: refusing("strict"),
        };
        const gate = world.again({ validators });
        const writes = await writesOf(world, async () => {
          const answer = await gate.sessions.open(SESSION).call(set("a", 1));
          expect(answer).toMatchObject({ answer: "denied" });
          expect(answer.text).toContain("not like this");
        });
        expect(writes).toHaveLength(1);
        const types = (await entriesOf(gate)).map(({ type }) => type);
        expect(types).toEqual(
          tier === "tech"
            ? ["decision.staged", "decision.reviewed"]
            : ["decision.staged", "decision.reviewed", "decision.reviewed"],
        );
        const [decision] = await gate.decisions.listBySession("s-1");
        expect(decision).toMatchObject({
          state: tier === "tech" ? "rejected_tech" : "rejected_ml",
          techVerdict: { validator: tier === "tech" ? "strict" : "schema" },
          bizVerdict: { validator: tier === "tech" ? "" : "strict" },
        });
        expect(await gate.interactions.list()).toEqual([]);
      });
    }

    test("that takes longer is there to be seen, before its review has answered", async () => {
      const world = await open();
      const answered = Promise.withResolvers<void>();
      const schema = sampleVerdictValidator("schema");
      const tech: Validator = {
        ...schema,
        async review(request, options) {
          await answered.promise;
          return schema.review(request, options);
        },
      };
      const gate = world.again({
        validators: { tech, business: sampleVerdictValidator("limits") },
        at: (point) => point === "S1.after" && stored.resolve(),
      });
      const stored = Promise.withResolvers<void>();
      const asking = gate.sessions.open(SESSION).call(set("a", 1));
      await stored.promise;
      const [waiting] = await gate.decisions.listBySession("s-1");
      expect(waiting?.state).toBe("pending_tech");
      answered.resolve();
      expect(decisionIdOf(await asking)).toBe(waiting?.id);
      expect((await entriesOf(gate)).map(({ type }) => type)).toEqual(MADE);
    });

    test("is not answered before its one write is durable, nor is a person asked", async () => {
      const world = await open();
      const told: string[] = [];
      const writing = holdWrites(world);
      const asking = world.gate.sessions.open(SESSION).call(set("a", 1));
      const noted = asking.then(({ answer }) => void told.push(answer));
      await Promise.race([writing.asked, noted]);
      await sleep(HELD_MS);
      expect(told).toEqual([]);
      expect(await world.gate.interactions.list()).toEqual([]);
      writing.letGo();
      const id = decisionIdOf(await asking);
      expect((await onlyOpen(world.gate)).id).toBe(id);
    });

    test("is neither called nor answered as approved before the yes and its intent are durable, in one write", async () => {
      const world = await open();
      const id = decisionIdOf(await world.gate.sessions.open(SESSION).call(set("a", 1)));
      const told: string[] = [];
      const { hash } = await world.gate.interactions.get(id);
      const writing = holdWrites(world);
      const answering = world.gate.interactions.approve(id, { hash, by: PERSON });
      const noted = answering.then(({ outcome }) => void told.push(outcome));
      await Promise.race([writing.asked, noted]);
      await sleep(HELD_MS);
      expect([told, world.effects]).toEqual([[], []]);
      expect((await world.gate.decisions.get(id)).state).toBe("pending_ml");
      writing.letGo();
      expect((await answering).outcome).toBe("executed");
      expect(world.effects).toHaveLength(1);
    });

    test("is not called when everything is stopped between the look and the write of the yes with its intent", async () => {
      const world = await open();
      const id = decisionIdOf(await world.gate.sessions.open(SESSION).call(set("a", 1)));
      world.tap.before = async (change) => {
        if (!isApproval(change) || !isIntent(change)) return;
        world.tap.before = () => {};
        await world.again().killSwitch.stop("wait", { actor: PERSON });
      };
      expect((await yes(world.gate, id)).outcome).toBe("held");
      expect(world.effects).toEqual([]);
      await expect(world.gate.operations.get(`${id}.0`)).rejects.toMatchObject({
        code: "not_found",
      });
    });

    test("keeps its bytes, whatever a validator or a guard does to what it is shown", async () => {
      const world = await open();
      const spoiling = (name: string): Validator => ({
        ...sampleVerdictValidator(name),
        review(request, options) {
          request.raw.fill(0);
          Object.assign(request.metadata, { chain: ["agent:other"] });
          for (const { input } of request.calls) Object.assign(input as object, { value: 7 });
          return sampleVerdictValidator(name).review(request, options);
        },
      });
      const gate = world.again({
        validators: { tech: spoiling("schema"), business: spoiling("limits") },
        guard: {
          allows({ diff, metadata }) {
            diff.raw.fill(0);
            Object.assign(metadata, { chain: ["agent:other"] });
            return true;
          },
        },
      });
      const id = decisionIdOf(await gate.sessions.open(SESSION).call(set("a", 1)));
      expect((await onlyOpen(gate)).chain).toEqual([AGENT]);
      await yes(gate, id);
      expect(world.effects).toEqual(['world.set {"key":"a","value":1}']);
    });

    test("whose one write fails is not there, and the error says that it may be repeated", async () => {
      const world = await open();
      world.tap.before = () => {
        throw new SallyportError("store_unavailable");
      };
      const failed = await world.gate.sessions
        .open(SESSION)
        .call(set("a", 1))
        .catch((error: unknown) => error);
      expect(failed).toMatchObject({ code: "store_unavailable", retry: "safe" });
      world.tap.before = () => {};
      expect(await world.gate.decisions.listBySession("s-1")).toEqual([]);
    });

    test("that the guard does not let pass is stored all the same, and asked about once it does", async () => {
      const world = await open();
      let isOpen = false;
      const gate = world.again({ guard: { allows: () => isOpen } });
      const id = decisionIdOf(await gate.sessions.open(SESSION).call(set("a", 1)));
      expect((await gate.decisions.get(id)).state).toBe("pending_tech");
      isOpen = true;
      world.clock.advance(60_000);
      expect((await gate.recover()).proposals).toEqual([{ id, asked: true }]);
    });

    test("that somebody else was first with leaves a refusal, as one write", async () => {
      const world = await open();
      const call = { ...set("a", 1), key: "k" };
      let other = "";
      world.tap.before = async () => {
        world.tap.before = () => {};
        other = decisionIdOf(await world.again().sessions.open(SESSION).call(call));
      };
      const writes = await writesOf(world, async () => {
        const told = await world.gate.sessions.open(SESSION).call(call);
        expect(decisionIdOf(told)).toBe(other);
      });
      expect(writes).toHaveLength(2);
      const states = (await world.gate.decisions.listBySession("s-1")).map(({ state }) => state);
      expect(states.toSorted()).toEqual(["pending_ml", "rejected_ml"]);
      expect((await onlyOpen(world.gate)).id).toBe(other);
    });
  },
  ["memory", "sqlite", "postgres"],
);
