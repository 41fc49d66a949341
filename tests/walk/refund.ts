// One refund that a person approves, under V8 coverage: prints which files of src ran a function meanwhile, first through
// the library, then over HTTP. Setting up (opening the store, the gate and the server, signing in) does not count.

import { mkdtempSync, rmSync } from "node:fs";
import { Session as Inspector } from "node:inspector/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { allowAlways, createGate, type Gate, NO_RULES, type Validator } from "sallyport";
import { createClient, signIn } from "sallyport/client";
import { createServer } from "sallyport/http";
import { sqliteStore } from "sallyport/store/sqlite";
import { defineTool } from "sallyport/tools";
import { z } from "zod";

const SRC = `${path.resolve(import.meta.dirname, "../../src")}${path.sep}`;

const refund = defineTool({
  name: "billing.refund",
  description: "Pays an invoice back.",
  input: z.strictObject({ invoice: z.string(), cents: z.int() }),
  safety: { effect: "external" },
  dryRun: ({ input }) => `would pay ${input.cents} back for ${input.invoice}`,
  execute: ({ input }) => ({ text: `paid ${input.cents} back` }),
});

const agree: Validator = {
  name: "agree",
  review: () => ({
    approved: true,
    score: 1,
    severity: "",
    reason: "",
    validator: "agree",
    policyVersion: "1",
  }),
};

const input = { invoice: "INV-2041", cents: 12_900 };

async function throughLibrary(gate: Gate): Promise<void> {
  const session = gate.sessions.open({ id: "s-library", agent: "agent:billing" });
  await session.call({ callId: "c1", key: "refund-1", tool: refund.name, input });
  const [question] = await gate.interactions.list();
  if (question === undefined) throw new Error("nobody was asked");
  await gate.interactions.shown(question.id);
  await gate.interactions.approve(question.id, { hash: question.hash, by: "person:ada" });
  const result = await session.resultOf("refund-1");
  if (result?.answer !== "done") throw new Error(`the refund is ${result?.answer}`);
}

/** Which files ran a function while `work` ran. */
async function walked(inspector: Inspector, work: () => Promise<void>): Promise<string[]> {
  await inspector.post("Profiler.takePreciseCoverage");
  await work();
  const { result } = await inspector.post("Profiler.takePreciseCoverage");
  return result
    .filter(({ url }) => url.startsWith("file:") && fileURLToPath(url).startsWith(SRC))
    .filter(({ functions }) =>
      functions.some(
        ({ functionName, ranges }) => functionName !== "" && (ranges[0]?.count ?? 0) > 0,
      ),
    )
    .map(({ url }) => path.relative(SRC, fileURLToPath(url)))
    .toSorted();
}

const folder = mkdtempSync(path.join(tmpdir(), "sallyport-walk-"));
try {
  const store = sqliteStore({ file: path.join(folder, "walk.db") });
  const gate = createGate({
    store,
    tenant: "acme",
    tools: [refund],
    validators: { tech: agree, business: agree },
    guard: allowAlways,
    policy: NO_RULES,
  });
  await gate.interactions.list(); // the first use of a gate wires it
  const inspector = new Inspector();
  inspector.connect();
  await inspector.post("Profiler.enable");
  await inspector.post("Profiler.startPreciseCoverage", { callCount: true, detailed: false });
  const library = await walked(inspector, () => throughLibrary(gate));
  const server = await createServer({ store, gates: { acme: gate } });
  const token = await server.makeToken({
    tenant: "acme",
    subject: "agent:billing",
    roles: ["agent"],
  });
  const agent = createClient({ url: server.url, token });
  const link = await server.signInLink({ tenant: "acme", subject: "person:ada" });
  const person = createClient(await signIn({ link }));
  const http = await walked(inspector, async () => {
    const { id } = await agent.sessions.open({ id: "s-http" });
    await agent.sessions.call({ id, callId: "c1", key: "refund-2", tool: refund.name, input });
    const { items } = await person.interactions.list({});
    const head = items[0];
    if (head === undefined) throw new Error("nobody was asked");
    const { hash } = await person.interactions.get({ id: head.id });
    await person.interactions.approve({ id: head.id, hash });
  });
  inspector.disconnect();
  await server.close();
  await store.close();
  process.stdout.write(`${JSON.stringify({ library, http })}\n`);
} finally {
  rmSync(folder, { recursive: true, force: true });
}
