// A sub-agent in a process of its own: attaches with its token, delegates one level further, and marks until it is stopped.

import { text } from "node:stream/consumers";
import type { Handover } from "../../src/delegation/worker.ts";
import { codes } from "./port-delegation.ts";
import { childProcess, openAt, type ProcessPlace } from "./process-world.ts";

const place: ProcessPlace = JSON.parse(process.argv[2] ?? "");
const { capsule, token }: Handover = JSON.parse(await text(process.stdin));
if (capsule.delegationId === "") throw new Error("a dry run has no child");
const { gate, close } = await openAt(place);
const { session, watch } = await gate.delegations.attach(capsule.delegationId, token);

const below = { ...place, levels: place.levels - 1 };
const further =
  below.levels === 0
    ? Promise.resolve()
    : session.delegateWork({
        mode: "single",
        requests: [
          codes({
            agent: `agent:level-${below.levels}`,
            tools: ["mark.put"],
            depth: below.levels - 1,
            calls: below.levels * 20_000,
            promise: capsule.promise,
          }),
        ],
        worker: childProcess(below),
      });

let answer = "";
for (let n = 0; !watch.signal.aborted; n += 1) {
  const tried = await session.call({ callId: `c-${n}`, tool: "mark.put", input: { slot: "a" } });
  const outside = await session.call({ callId: `o-${n}`, tool: "mark.put", input: { slot: "b" } });
  if (outside.answer === "done") throw new Error("it wrote outside its scope");
  answer = tried.answer;
  if (answer !== "done") break;
}
watch.stop();
await further;
await close();
process.stdout.write(`ended with ${answer}`);
