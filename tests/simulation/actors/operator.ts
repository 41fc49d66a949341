import { afterRestore } from "../../../src/gate/restore.ts";
import { INTERACTIONS } from "../../../src/model/interaction.ts";
import type { Owner } from "../run-queue.ts";
import type { Scene } from "../scene.ts";
import { APPROVAL_MS, LEASE_MS, TENANT } from "../sim-process.ts";

const DAY = 24 * 3_600_000;

/** Takes sessions back, stops everything and lets it go on; around them clocks jump, power fails and processes die. */
export function operator(scene: Scene, me: Owner): () => Promise<void> {
  const { luck, clock, fleet, store } = scene;
  let stoppedFor = 0;

  const turn = (to: "stop" | "resume") =>
    scene.ask(me, to === "stop" ? "stops everything" : "lets it go on", (gate) =>
      gate.killSwitch[to]("a look first", { actor: me.name }),
    );
  const told = () => ["store_rolled_back", "clock_wrong"].map((code) => scene.refused(code));
  let seen = told();
  /** When the store was rolled back or its clock is wrong, the operator checks and confirms. */
  const mends = async () => {
    const [rolledBack, clockWrong] = told().map((count, index) => count > (seen[index] ?? 0));
    seen = told();
    if (rolledBack === true) await restore(scene, me);
    if (clockWrong === true) await acceptClock(scene, me);
  };
  const jump = (ms: number) => {
    scene.count("clock jumps");
    clock.jump(ms);
  };

  const does = {
    rollsBack: async () => {
      const agent = luck.pick(["agent:one", "agent:two"]);
      const id = `${agent}/${luck.below(4)}`;
      const roll = () =>
        scene.ask(me, "rolls back", (gate) =>
          gate.sessions.open({ id, agent, owner: "person:owner" }).rollback(me.name),
        );
      await (luck.percent(30) ? Promise.all([roll(), roll()]) : roll());
    },
    stops: async () => {
      await turn("stop");
      stoppedFor = 1 + luck.below(4);
    },
    outlastsLeases: async () => jump(LEASE_MS + luck.below(3_000)),
    outlastsApprovals: async () => jump(APPROVAL_MS + luck.below(5_000)),
    turnsBackTime: async () => jump(-luck.below(4_000)),
    shiftsProcess: async () => {
      scene.count("clock jumps");
      if (fleet.size > 0) fleet.any().clock.jump(luck.below(2 * DAY) - DAY);
    },
    forges: async () => {
      const [id] = scene.watch.aboutToRun;
      if (id !== undefined) await forge(scene, me, id);
    },
    cutsPower: async () => store.server.cutPower(),
    kills: async () => {
      if (fleet.size > 0) fleet.any().die();
    },
  };
  const often = {
    rollsBack: 30,
    stops: 8,
    outlastsLeases: 12,
    outlastsApprovals: 4,
    turnsBackTime: 4,
    shiftsProcess: 8,
    forges: 8,
    cutsPower: 6,
    kills: 12,
  } as const satisfies Record<keyof typeof does, number>;

  return async () => {
    if (luck.percent(40)) await mends();
    if (stoppedFor > 0) {
      stoppedFor -= 1;
      if (stoppedFor === 0) await turn("resume");
      return;
    }
    const outlasts = scene.watch.isBusy && luck.percent(20);
    await does[outlasts ? "outlastsLeases" : luck.weighted(often)]();
  };
}

/** As the message says: stop the processes, `sallyport store restored`, start them, and let it go on after a look. */
export async function restore(scene: Scene, me: Owner): Promise<void> {
  const { fleet, store, queue } = scene;
  if (!store.isRolledBack) return;
  fleet.stop();
  await queue.turn(me, "looks what was lost", 1_000);
  const epoch = `epoch-${queue.time}`;
  const restored = await scene.ask(me, "restores", (_, opened) =>
    afterRestore(opened, { epoch, by: me.name }),
  );
  if (restored === undefined) return;
  await scene.ask(me, "lets it go on after a loss", (gate) =>
    gate.killSwitch.resume("looked", { actor: me.name }),
  );
}

/** `sallyport store clock --accept`, by an operator who has checked that the clock is right. */
export async function acceptClock(scene: Scene, me: Owner): Promise<void> {
  const by = { actor: me.name };
  await scene.ask(me, "accepts the clock", (_, opened) =>
    opened.tenant(TENANT).clock.accept("it is right", by),
  );
}

/** An attacker with database access replaces the hash of an approval and restores it later: nothing may run on it. */
async function forge(scene: Scene, me: Owner, id: string): Promise<void> {
  const { store, queue, watch, luck } = scene;
  if (store.server.isTaken) return;
  const hash = (await store.durable.get(TENANT, INTERACTIONS, id))?.["hash"];
  // The one door past the trail; it writes any cell, though it is only meant for times.
  const write = (cell: unknown) =>
    store.durable.backdate(TENANT, INTERACTIONS, id, "hash", cell as number);
  scene.count("forgeries");
  watch.forged.add(id);
  await write("f".repeat(64));
  await queue.turn(me, `forged ${id}`, luck.below(200));
  while (store.server.isTaken) await queue.turn(me, "waits to put it back", 10);
  await write(hash);
  watch.forged.delete(id);
}
