import {
  collectEvidence,
  type Invariant,
  type RunEvidence,
  type Told,
} from "../../src/crashkit/evidence.ts";

import { checkInvariants, INVARIANTS } from "../../src/crashkit/invariants/table.ts";
import { createStore } from "../../src/store/store.ts";
import type { ContentProof } from "../../src/store/tenant-engine.ts";
import { accountOf } from "./account.ts";
import { agent } from "./actors/agent.ts";
import { acceptClock, operator, restore } from "./actors/operator.ts";
import { reviewer } from "./actors/reviewer.ts";
import { claimer, worker } from "./actors/worker.ts";
import { type Owner, settle } from "./run-queue.ts";
import { Scene, type Tally } from "./scene.ts";
import { LEASE_MS, TENANT } from "./sim-process.ts";

export interface SeedResult {
  readonly seed: number;
  readonly problems: readonly string[];
  readonly trace: readonly string[];
  /** Hash of the last entry of the trail: equal when everything that was written is. */
  readonly head: string;
  readonly tally: Tally;
}

const STEPS = 2_000;
const ROUNDS = 12;
const SETTLED_MS = 30_000;

/** Everybody, and how long they think at most before they do something. */
const ACTORS = [
  { name: "agent:one", make: agent, thinksMs: 150 },
  { name: "agent:two", make: agent, thinksMs: 150 },
  { name: "person:ada", make: reviewer, thinksMs: 350 },
  { name: "person:bob", make: reviewer, thinksMs: 350 },
  { name: "person:cleo", make: reviewer, thinksMs: 350 },
  { name: "person:ops", make: operator, thinksMs: 300 },
  { name: "worker:one", make: worker, thinksMs: 600 },
  { name: "worker:two", make: worker, thinksMs: 600 },
  { name: "agent:claimer", make: claimer, thinksMs: 400 },
] as const;

/** One run, from first step to rest. Whatever happens in it is decided by the seed. */
export async function runSeed(seed: number): Promise<SeedResult> {
  const scene = new Scene(seed);
  const { queue, watch, tally } = scene;
  let active: number = ACTORS.length;
  for (const { name, make, thinksMs } of ACTORS) {
    void live(scene, { name }, thinksMs, make(scene, { name })).finally(() => {
      active -= 1;
    });
  }
  for (let step = 0; step < STEPS && watch.problems.length === 0; step += 1) await next(scene);
  const during = watch.problems.length;
  if (during === 0) await comeToRest(scene, () => active === 0);
  const { durable, counts } = scene.store;
  const problems = [...watch.problems];
  if (during === 0) problems.push(...(await judge(scene)));
  for (const [what, number] of Object.entries(counts)) scene.count(what, number);
  scene.count("steps", queue.trace.length);
  for (const [fault, times] of scene.faults.struck) scene.count(`fault: ${fault}`, times);
  scene.count("crashes", scene.fleet.crashes);
  scene.count("effects", scene.world.ledger.filter(({ applied }) => applied).length);
  const { hash: head } = await durable.head(TENANT);
  return { seed, problems, trace: queue.trace, head, tally };
}

async function live(
  scene: Scene,
  me: Owner,
  thinksMs: number,
  act: () => Promise<void>,
): Promise<void> {
  const { queue, luck } = scene;
  for (;;) {
    await queue.turn(me, "thinks", luck.below(thinksMs));
    if (scene.isClosing) return;
    await act();
  }
}

/** One event, everything that follows from it immediately, and a check of the result. False when nothing waits. */
async function next(scene: Scene): Promise<boolean> {
  const { queue, store, world, watch } = scene;
  const effects = world.ledger.length;
  const commits = store.counts.commits;
  if (!queue.step()) return false;
  await settle();
  // Before what arrives is compared: a loss may have taken the key, and the next commit makes another.
  if (watch.seq > 0) watch.contentProof ??= await proofOf(scene);
  for (const effect of world.ledger.slice(effects)) {
    watch.arrived(effect, world.orders.get(effect.key));
  }
  if (store.counts.commits > commits) {
    const entries = await store.durable.entries(TENANT, { after: watch.seq, limit: 1_000 });
    watch.contentProof ??= await proofOf(scene);
    for (const entry of entries) {
      const stamp = store.server.stamps[entry.seq - 1];
      if (stamp !== undefined) watch.entry(entry, stamp);
    }
    store.server.isLossOpen = watch.isLossOpen || store.isRolledBack;
  }
  return true;
}

/** Read from the disk itself, so that it costs the run no step. */
function proofOf({ store }: Scene): Promise<ContentProof | undefined> {
  return createStore(store.durable, { redact: (_, data) => data })
    .tenant(TENANT)
    .contentProof();
}

/** Nothing goes wrong any more: everybody ends what they do, and recovery goes on until it finds nothing. */
async function comeToRest(scene: Scene, isQuiet: () => boolean): Promise<void> {
  const { faults, queue, watch, clock } = scene;
  const me = { name: "rest" };
  scene.isClosing = true;
  faults.stop();
  const drain = async () => {
    await settle();
    while (watch.problems.length === 0 && (await next(scene)));
  };
  await drain();
  if (!isQuiet()) watch.problems.push("I14 somebody waits for ever");
  let isRefused = false;
  for (let round = 0; round < ROUNDS; round += 1) {
    // Also where the database's clock was turned back: what is held until then must be over. A process that saw a wrong time
    // first believes the right one after half a minute.
    const quietMs = isRefused ? SETTLED_MS : LEASE_MS;
    queue.pass(Math.max(0, watch.lastAt - clock.now()) + quietMs + 1);
    let isIdle = false;
    void restore(scene, me).then(() => acceptClock(scene, me));
    await drain();
    void scene
      .ask(me, "recovers at last", async (gate) => {
        await gate.killSwitch.resume("the end", { actor: "person:ops" });
        const recovered = await gate.recover();
        await gate.interactions.sweep();
        await gate.tasks.sweep();
        return recovered;
      })
      .then((recovered) => {
        if (recovered === undefined) return;
        const { left, more = false, ...found } = recovered;
        for (const { id, reason } of left) scene.count(`left ${id}: ${reason}`);
        isRefused = left.some(({ reason }) => /\b(?:clock_wrong|store_rolled_back)\b/.test(reason));
        isIdle = !more && !isRefused && Object.values(found).every((list) => list.length === 0);
      });
    await drain();
    if (isIdle) return;
  }
  watch.problems.push(`I14 recovery does not come to rest in ${ROUNDS} rounds`);
}

async function judge(scene: Scene): Promise<readonly string[]> {
  const { world, watch, queue, store } = scene;
  const evidence: RunEvidence = await collectEvidence(
    createStore(store.durable, { redact: (_, data) => data }),
    TENANT,
    {
      ledger: watch.withoutLost(world.ledger),
      told: watch.told.filter((one) => !watch.lost.has(idOf(one))),
      isAtRest: true,
      mayRunAlone: (tool) => tool.startsWith("world.free_"),
    },
  );
  const skipped = watch.isAhead ? TIMED : [];
  const ids = INVARIANTS.map(({ id }) => id).filter((id) => !skipped.includes(id));
  const broken = checkInvariants(evidence, ids).map(({ id, problem }) => `${id} ${problem}`);
  const { problems, account } = accountOf(evidence);
  for (const [what, number] of Object.entries(account)) scene.count(`decisions ${what}`, number);
  if (queue.size > 0) broken.push(`${queue.size} waits are left over`);
  return [...broken, ...problems];
}

/** They hold entries against deadlines, which says nothing where the trail was ahead of the clock; the watch knows both. */
const TIMED: readonly Invariant["id"][] = ["I4", "I13"];

function idOf(told: Told): string {
  return "operationId" in told ? told.operationId : told.decisionId;
}
