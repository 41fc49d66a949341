import type { Owner } from "../run-queue.ts";
import { type Scene, TASK_LEASE_MS } from "../scene.ts";

/** Continues what dead processes have left, and closes unanswered questions. */
export function worker(scene: Scene, me: Owner): () => Promise<void> {
  return async () => {
    const recovered = await scene.ask(me, "recovers", (gate) => gate.recover());
    scene.told((recovered?.operations ?? []).map(({ answer }) => answer));
    scene.told((recovered?.decisions ?? []).flatMap(({ answers }) => answers));
    await scene.ask(me, "sweeps", (gate) => gate.interactions.sweep());
  };
}

/** Claims a task, works under that claim, and completes it, unless another worker has it by then. */
export function claimer(scene: Scene, me: Owner): () => Promise<void> {
  const { luck } = scene;
  let calls = 0;
  return async () => {
    if (luck.percent(40)) {
      await scene.ask(me, "adds a task", (gate) => gate.tasks.add({ subject: "Tidy up" }));
    }
    const terms = { claimer: me.name, leaseMs: TASK_LEASE_MS };
    const task = await scene.ask(me, "claims", (gate) => gate.tasks.claimNext(terms));
    if (task?.fence === undefined) return;
    const claim = { id: task.id, fence: task.fence };
    const session = { id: `claim:${claim.id}:${claim.fence}`, agent: me.name, claim };
    calls += 1;
    const tool = luck.percent(70) ? "world.free_keyed" : "world.free_plain";
    const key = `${me.name}-${calls}`;
    const input = { order: key, item: `item-${luck.below(24)}`, undo: false, refuse: false };
    const request = { callId: `t${calls}`, tool, input, key };
    scene.told([await scene.ask(me, "works", (gate) => gate.sessions.open(session).call(request))]);
    const held = { ...claim, leaseMs: TASK_LEASE_MS };
    if (luck.percent(40)) await scene.ask(me, "renews", (gate) => gate.tasks.renew(held));
    await scene.ask(me, "completes", (gate) => gate.tasks.complete({ ...claim, result: "tidy" }));
  };
}
