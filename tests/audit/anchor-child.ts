// Started several times concurrently by anchor-file.test.ts: processes over one store, each with an anchorer, and one anchor file.

import { appendFileSync, readFileSync } from "node:fs";
import { createSigner, fileAnchorSink } from "../../src/audit/anchor.ts";
import { createAnchorer } from "../../src/audit/anchorer.ts";
import { fakeStore } from "./fixtures.ts";

const [, , anchors = "", privateKey = "", commits = "", tenant = "", count = ""] = process.argv;

/** The shared truth is a file with a line for each commit; from it every process makes the same trails. */
const store = fakeStore();
async function heads() {
  for (const name of readFileSync(commits, "utf8").split("\n").slice(0, -1)) counted(name);
  for (const [name, wanted] of counts) {
    store.add(name, wanted - (store.trails.get(name)?.length ?? 0));
    counts.set(name, 0);
  }
  return store.heads();
}
const counts = new Map<string, number>();
function counted(name: string): void {
  counts.set(name, (counts.get(name) ?? 0) + 1);
}

const sink = fileAnchorSink({ file: anchors });
const signer = createSigner({ privateKey });
const anchorer = createAnchorer({ store: { ...store, heads }, sink, signer });
for (let n = 0; n < Number(count); n += 1) {
  appendFileSync(commits, `${tenant}\nshared\n`);
  await anchorer.flush();
}
await anchorer.close();
for (const problem of anchorer.status().problems) console.error(problem);
process.exitCode = anchorer.status().problems.length;
