import type { Inbox } from "../../../src/gate/inbox.ts";
import type { Interaction } from "../../../src/model/interaction.ts";
import type { Owner } from "../run-queue.ts";
import type { Scene } from "../scene.ts";
import { TENANT } from "../sim-process.ts";

/** What a person holds in hand: as it was when they looked, which may be long ago. */
type Seen = Pick<Interaction, "id" | "hash" | "type" | "operationId" | "pendingTool">;

/** Reads the inbox and answers: immediately or late, twice, against another person, or with what an older page showed. */
export function reviewer(scene: Scene, me: Owner): () => Promise<void> {
  const { luck } = scene;
  const by = me.name;
  /** Pages that were left open. */
  const desk: Seen[] = [];

  async function look(): Promise<Seen | undefined> {
    const open = await scene.ask(me, "looks into the inbox", (gate) => gate.interactions.list());
    return open === undefined || open.length === 0 ? undefined : luck.pick(open);
  }

  async function approve({ id }: Seen, hash: string, what: string, by = me.name): Promise<void> {
    scene.watch.yes(id, by, hash);
    const done = await scene.ask(me, what, (gate) => gate.interactions.approve(id, { hash, by }));
    if (done === undefined) return;
    scene.told(done.answers);
    if (done.interaction.status === "open") return;
    scene.count("approvals");
    scene.accepted(id, `yes of ${by}`);
    scene.watch.tell({ decisionId: id, answer: "approved" });
  }

  async function reject({ id, hash }: Seen): Promise<void> {
    const no = { hash, by, reason: "not today" };
    const done = await scene.ask(me, "rejects", (gate) => gate.interactions.reject(id, no));
    if (done === undefined) return;
    scene.accepted(id, `no of ${by}`);
    scene.watch.tell({ decisionId: id, answer: "rejected" });
  }

  async function edit({ id, hash, pendingTool }: Seen): Promise<void> {
    const args: unknown = JSON.parse(pendingTool?.args_json ?? "{}");
    const [first] = Array.isArray(args) ? args.map(({ input }) => input) : [args];
    const inputs = { 0: { ...first, item: `item-${luck.below(24)}` } };
    const done = await scene.ask(me, "edits", (gate) =>
      gate.interactions.edit(id, { hash, by, inputs }),
    );
    if (done?.edited === true) scene.accepted(id, `edit of ${by}`);
  }

  const confirm = {
    approves: (seen: Seen) => approve(seen, seen.hash, "approves"),
    rejects: reject,
    edits: edit,
    mistakes: (seen: Seen) =>
      approve(seen, desk.at(-1)?.hash ?? "0".repeat(64), "approves another hash"),
    twice: async (seen: Seen) => {
      await Promise.all([
        approve(seen, seen.hash, "approves twice"),
        approve(seen, seen.hash, "approves twice"),
      ]);
    },
    both: async (seen: Seen) => {
      await Promise.all([approve(seen, seen.hash, "approves and rejects"), reject(seen)]);
    },
    // Those who asked for it, and whose behalf it is on: the answer must always be no (I3).
    pretends: (seen: Seen) =>
      approve(seen, seen.hash, "pretends", luck.pick(["person:owner", "agent:one", "Agent:Two"])),
    cancels: async ({ id }: Seen) => {
      const how = { by, reason: "no longer needed" };
      const done = await scene.ask(me, "cancels", (gate) => gate.interactions.cancel(id, how));
      if (done !== undefined) scene.accepted(id, `cancel of ${by}`);
    },
    talks: async ({ id }: Seen) => {
      await scene.ask(me, "asks back", (gate) =>
        gate.interactions.askBack(id, { by, text: "why?" }),
      );
    },
  };

  async function answer({ id, hash }: Seen): Promise<void> {
    const say = (word: string) => ({
      hash: luck.percent(10) ? "1".repeat(64) : hash,
      by,
      answer: word,
    });
    const once = async (word: string) => {
      const given = say(word);
      const done = await scene.ask(me, "answers", (gate) => gate.interactions.answer(id, given));
      if (done === undefined) return;
      scene.accepted(id, `${word} of ${by}`);
      if (given.hash !== hash)
        scene.watch.problems.push(`I10 ${id} took an answer to another hash`);
    };
    await (luck.percent(25) ? Promise.all([once("this"), once("that")]) : once("this"));
  }

  /** Goes and looks what became of it in production, then says so. */
  async function findOut({ id, hash, operationId }: Seen): Promise<void> {
    const happened = scene.world.happened(`${TENANT}/${operationId}`);
    const otherwise = luck.percent(50) ? "repeat" : "give_up";
    const found: Parameters<Inbox["settle"]>[1] = happened
      ? { hash, by, happened: true }
      : { hash, by, happened: false, otherwise };
    const settled = await scene.ask(me, `finds out: ${happened ? "happened" : otherwise}`, (gate) =>
      gate.interactions.settle(id, found),
    );
    scene.told([settled]);
  }

  return async () => {
    const isLate = desk.length > 0 && luck.percent(25);
    const seen = isLate ? luck.pick(desk) : await look();
    if (seen === undefined) return;
    if (!isLate && luck.percent(25)) {
      desk.push(seen);
      return;
    }
    if (seen.type === "confirm") await confirm[luck.weighted(OFTEN)](seen);
    else if (seen.type === "ask_user") await answer(seen);
    else await findOut(seen);
  };
}

const OFTEN = {
  approves: 56,
  rejects: 8,
  edits: 8,
  mistakes: 6,
  twice: 8,
  both: 6,
  pretends: 7,
  cancels: 3,
  talks: 5,
} as const;
