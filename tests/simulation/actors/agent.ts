import type { Session } from "../../../src/gate/session.ts";
import type { CallRequest } from "../../../src/model/operation.ts";
import type { Owner } from "../run-queue.ts";
import type { Scene } from "../scene.ts";
import { KINDS } from "../sim-world.ts";

const ITEMS = 24;

interface Asked {
  readonly session: string;
  readonly requests: readonly CallRequest[];
}

/**
 * Calls, stages bundles and asks questions. When the connection breaks it asks again, with the same keys; now and then it
 * mixes them up.
 */
export function agent(scene: Scene, me: Owner): () => Promise<void> {
  const { luck } = scene;
  const asked: Asked[] = [];
  let calls = 0;

  const sessionOf = (id: string) => ({ id, agent: me.name, owner: "person:owner" });
  const newSession = () => `${me.name}/${luck.below(4)}`;

  function request(lane: "free" | "asked", isLast = true): CallRequest {
    calls += 1;
    const kind = luck.pick(KINDS);
    const tool = lane === "free" ? `world.free_${kind}` : `world.${kind}`;
    const refuse = isLast && luck.percent(12);
    const id = `c${calls}`;
    const key = `${me.name}-${id}`;
    const input = { order: key, item: `item-${luck.below(ITEMS)}`, undo: false, refuse };
    return { callId: id, tool, input, messageId: `m${calls}`, key };
  }

  async function send({ session, requests }: Asked, what: string): Promise<void> {
    const [first] = requests;
    const work = (open: Session) =>
      requests.length === 1 && first !== undefined ? open.call(first) : open.stage(requests);
    const answer = await scene.ask(me, what, (gate) =>
      work(gate.sessions.open(sessionOf(session))),
    );
    scene.told([answer]);
    if (answer === undefined && luck.percent(60)) await send({ session, requests }, "repeats");
  }

  const propose = (requests: readonly CallRequest[], what: string) => {
    const one = { session: newSession(), requests };
    asked.push(one);
    return send(one, what);
  };

  const does = {
    calls: () => propose([request("free")], "calls"),
    proposes: () => propose([request("asked")], "proposes"),
    bundles: () => {
      const size = 2 + luck.below(2);
      const requests = Array.from({ length: size }, (_, at) => request("asked", at === size - 1));
      return propose(requests, "bundles");
    },
    asksAgain: async () => {
      if (asked.length > 0) await send(luck.pick(asked), "asks again");
    },
    mixesUp: async () => {
      const [first] = asked.at(-1)?.requests ?? [];
      if (first === undefined) return;
      calls += 1;
      const order = `another-${me.name}-${calls}`;
      const input = { order, item: "another", undo: false, refuse: false };
      const other = { ...first, input };
      const { session } = asked.at(-1) ?? { session: "" };
      const answer = await scene.ask(me, "mixes up keys", async (gate) => {
        const open = gate.sessions.open(sessionOf(session));
        const known = await open.resultOf(other.key ?? "");
        return { isKnown: known !== undefined, answer: await open.call(other) };
      });
      // I29: the same key with another content is always an error.
      if (answer?.isKnown === true && answer.answer.answer !== "failed") {
        scene.watch.problems.push(
          `I29 ${other.key} was used for another call: ${answer.answer.answer} ${answer.answer.text}`,
        );
      }
      scene.told([answer?.answer]);
    },
    asksPeople: async () => {
      calls += 1;
      const question = { callId: `q${calls}`, text: "Which one?", choices: ["this", "that"] };
      const session = newSession();
      await scene.ask(me, "asks people", (gate) =>
        gate.sessions.open(sessionOf(session)).ask(question),
      );
    },
    looks: async () => {
      const one = asked.at(luck.below(Math.max(1, asked.length)));
      const key = one?.requests[0]?.key;
      if (one === undefined || key === undefined) return;
      const look = (open: Session) => open.resultOf(key);
      scene.told([
        await scene.ask(me, "looks", (gate) => look(gate.sessions.open(sessionOf(one.session)))),
      ]);
    },
  };
  const often = {
    calls: 25,
    proposes: 30,
    bundles: 15,
    asksAgain: 8,
    mixesUp: 4,
    asksPeople: 10,
    looks: 8,
  } as const satisfies Record<keyof typeof does, number>;
  return () => does[luck.weighted(often)]();
}
