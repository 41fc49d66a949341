import { expect, test } from "vitest";
import { CONTENT_KEYS, SWITCHES } from "../model/switch.ts";
import { manualClock } from "../util/clock.ts";
import { sha256Hex } from "../util/hash.ts";
import { deepFreeze } from "../util/json.ts";
import { systemRandom } from "../util/random.ts";
import { soundTrail } from "./conformance/samples.ts";
import type { Engine, EventPlan, Left } from "./engine.ts";
import { memoryEngine } from "./memory/index.ts";
import { contentProofBy, hashOf, tenantEngine } from "./tenant-engine.ts";

function opened() {
  const engine = memoryEngine({ clock: manualClock(0), random: systemRandom });
  const own = tenantEngine(engine, "acme", (_, { secret: _secret, ...data }) => data);
  const row = { state: "running", reason: "the password is hunter2", updated_at: 7 };
  const steps = [{ op: "insert", table: SWITCHES, id: "a", row }] as const;
  const plan = { type: "case.ran", subject: "a", session: "", actor: "case" };
  const tell = (event: Pick<EventPlan, "data" | "facts">) =>
    own.commit({ steps, events: [{ ...plan, ...event }] });
  return { engine, tell };
}

test("what goes into the trail is redacted, and facts of our own join it", async () => {
  const { engine, tell } = opened();
  const facts = { at: { left: "updated_at" }, state: { left: "state" }, id: { left: "id" } };
  await tell({ data: { secret: "hunter2", open: 1 }, facts });
  const [entry] = await soundTrail(engine);
  expect(entry?.data).toBe('{"at":7,"id":"a","open":1,"state":"running"}');
});

test("a fact that might be text from outside is refused, so that nothing gets past redaction [T22]", async () => {
  const { engine, tell } = opened();
  const facts: Left[] = [{ left: "reason" }, { left: "updated_at", step: 1 }];
  for (const fact of facts) {
    const told = tell({ data: {}, facts: { fact } });
    await expect(told).rejects.toMatchObject({ code: "invalid_input" });
  }
  expect(await soundTrail(engine)).toHaveLength(0);
});

test("a key that a failover took back is not used again: the next change makes another and is proven by it [SH1]", async () => {
  const options = { clock: manualClock(0), random: systemRandom };
  let image = memoryEngine(options);
  const through: Engine = {
    ...image,
    commit: (tenant, change) => image.commit(tenant, change),
    get: (tenant, table, id) => image.get(tenant, table, id),
  };
  const own = tenantEngine(through, "acme", (_, data) => data);
  const standby = image.copy(options);
  const sha256 = sha256Hex("content");
  const write = (id: string) =>
    own.commit({
      steps: [{ op: "insert", table: SWITCHES, id, row: { state: "", reason: "", updated_at: 0 } }],
      events: [
        {
          type: "case.ran",
          subject: id,
          session: "",
          actor: "c",
          data: {},
          hashes: { raw: sha256 },
        },
      ],
    });
  await write("a");
  await write("b");
  image = standby;
  const again = await write("c");
  expect(again).toMatchObject({ committed: true, rows: [{ id: "c" }] });
  const secret = String((await image.get("acme", CONTENT_KEYS, "current"))?.["secret"]);
  const [entry] = await soundTrail(image);
  const proof = contentProofBy(secret)({ field: "raw", subject: "c" }, sha256);
  expect(JSON.parse(entry?.data ?? "{}")).toEqual({ raw_hmac: proof });
});

test("the hash of a definition is kept only while the definition cannot change [T10]", () => {
  const definition = { name: "refund", version: "1" };
  const first = hashOf(definition);
  definition.version = "2";
  expect(hashOf(definition)).not.toBe(first);
  const frozen = deepFreeze({ name: "refund", version: "1" });
  expect([hashOf(frozen), hashOf(frozen)]).toEqual([first, first]);
});
