import { readFile, writeFile } from "node:fs/promises";
import path from "node:path";
import type { Place, Told } from "./peer.ts";
import { newPlace } from "./places.ts";
import { startWorker } from "./worker.ts";

const ANSWERS = 5;

export interface Behaviour {
  readonly system: string;
  /** Killed after the effect, before its answer was recorded; then a new process looks after it. */
  readonly killed: { readonly effects: number; readonly told: string };
  /** Two processes say yes at the same moment, several times. */
  readonly answers: { readonly calls: number; readonly effects: number; readonly told: string };
  /** What was shown is no longer true when the yes arrives. */
  readonly moved: { readonly effects: number; readonly told: string };
}

export async function observe(system: string, dir: string, server: string): Promise<Behaviour> {
  const place = (what: string) => newPlace(dir, server, `${what}-${system}`);
  return {
    system,
    killed: await kill(system, await place("kill")),
    answers: await answerTwice(system, await place("twice")),
    moved: await moveTheWorld(system, await place("moved")),
  };
}

async function kill(system: string, place: Place): Promise<Behaviour["killed"]> {
  const id = await proposed(system, place);
  const victim = await startWorker(system, place, { tool: "hang" });
  const cut = victim.order({ do: "approve", id }).catch(() => "cut off");
  await victim.inTheTool();
  await victim.kill();
  await cut;
  const next = await startWorker(system, place, { tool: "return" });
  const told = await next.order<Told>({ do: "recover", id });
  await next.end();
  return { effects: (await effects(place)).length, told };
}

async function answerTwice(system: string, place: Place): Promise<Behaviour["answers"]> {
  const agent = await startWorker(system, place, { tool: "slow" });
  const people = await Promise.all(
    [1, 2].map(() => startWorker(system, place, { tool: "slow", role: "answer" })),
  );
  const told = new Map<string, number>();
  for (let n = 0; n < ANSWERS; n += 1) {
    const id = await agent.order<string>({ do: "propose" });
    const answers = await Promise.all(
      people.map((person) =>
        person.order<Told>({ do: "approve", id }).catch((error: Error) => error.message),
      ),
    );
    const both = answers.toSorted().join(" / ");
    told.set(both, (told.get(both) ?? 0) + 1);
  }
  // Where the effect happens in the agent's process it may come after the answers.
  await new Promise((resolve) => setTimeout(resolve, 1_500));
  for (const worker of [...people, agent]) await worker.end();
  const all = [...told].map(([both, times]) => `${both} (${times})`).join("; ");
  return { calls: ANSWERS, effects: (await effects(place)).length, told: all };
}

async function moveTheWorld(system: string, place: Place): Promise<Behaviour["moved"]> {
  const id = await proposed(system, place);
  await writeFile(path.join(place.dir, "world"), "35");
  const worker = await startWorker(system, place, { tool: "return" });
  const told = await worker.order<Told>({ do: "approve", id });
  await worker.end();
  return { effects: (await effects(place)).length, told };
}

/** By a process that is gone afterwards, as after a deploy. */
async function proposed(system: string, place: Place): Promise<string> {
  const worker = await startWorker(system, place, { tool: "return" });
  const id = await worker.order<string>({ do: "propose" });
  await worker.kill();
  return id;
}

async function effects({ dir }: Place): Promise<string[]> {
  return (await readFile(path.join(dir, "effects"), "utf8")).split("\n").filter(Boolean);
}
