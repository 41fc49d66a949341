import {
  type CallAnswer,
  type Gate,
  type GateOptions,
  isSallyportError,
  SallyportError,
  type Validator,
} from "sallyport";
import { createStore, type Engine } from "sallyport/store";
import { defineTool } from "sallyport/tools";
import { describe, expect, test } from "vitest";
import { forEachStore } from "../support/for-each-store.ts";
import { slowReview } from "../support/validators.ts";
import {
  ADA,
  buildWarehouse,
  call,
  eventsOf,
  houseRules,
  openGate,
  PICKER,
  sayYes,
  type Warehouse,
  waitingFor,
} from "./warehouse.ts";

/** What an attempt against a broken part came to: an answer of the gate, or an error with a code. */
type Outcome = CallAnswer | SallyportError;
type Attempt = (gate: Gate, broken: Broken) => Promise<Outcome>;

/** What is broken, and switched on only when the attempt has come to where it matters. */
interface Broken {
  on: boolean;
}

interface Row {
  readonly part: string;
  readonly options?: (broken: Broken, warehouse: Warehouse) => Partial<GateOptions>;
  /** Reads or writes of this table fail. */
  readonly table?: { readonly name: string; readonly of: "reads" | "writes" };
  readonly attempt: Attempt;
  /** The answer, or the code of the error. */
  readonly ends: string;
  /** The text says what to do next. */
  readonly says: RegExp;
}

const fails = (): never => {
  throw new Error("broken on purpose");
};
const broken: Validator = { name: "broken", review: fails };
const when = (switched: Broken, healthy: boolean) => (switched.on ? fails() : healthy);

const open = (gate: Gate) => gate.sessions.open({ id: "s-1", agent: PICKER });
const take = () => call("stock.set", { sku: "bolt", amount: 30 });
const asks: Attempt = (gate) => open(gate).call(take());
/** Everything is well until a person says yes. */
const confirms: Attempt = async (gate, part) => {
  part.on = false;
  const id = waitingFor(await open(gate).call(take()));
  part.on = true;
  const [answer] = await sayYes(gate, id);
  if (answer === undefined) throw new Error("no answer at all");
  return answer;
};
const scraps: Attempt = (gate) => open(gate).call(call("stock.scrap", { sku: "lamp" }));
const ships =
  (more: object): Attempt =>
  (gate) =>
    open(gate).call(call("parcels.ship", { sku: "lamp", amount: 1, ...more }));
const never: Attempt = async () => expect.unreachable("the port must not come up");

// biome-ignore format: a table
const ROWS: readonly Row[] = [
  { part: "the technical validator throws", options: (_, w) => ({ validators: { ...houseRules(w), tech: broken } }), attempt: asks, ends: "denied", says: /broken on purpose.*Change the call/s },
  { part: "the technical validator answers nonsense", options: (_, w) => ({ validators: { ...houseRules(w), tech: odd("yes") } }), attempt: asks, ends: "denied", says: /Change the call/ },
  { part: "the business validator throws", options: (_, w) => ({ validators: { ...houseRules(w), business: broken } }), attempt: asks, ends: "denied", says: /broken on purpose.*Change the call/s },
  { part: "the business validator answers nonsense", options: (_, w) => ({ validators: { ...houseRules(w), business: odd({ approved: 1 }) } }), attempt: asks, ends: "denied", says: /Change the call/ },
  { part: "the guard throws before the review's move", options: () => ({ guard: { allows: fails } }), attempt: asks, ends: "pending", says: /Not executed.*ask later/s },
  { part: "the guard throws before a person's yes is written", options: (b) => ({ guard: { allows: () => when(b, true) } }), attempt: confirms, ends: "dependency_denied", says: /guard failed.*ask again/s },
  { part: "the guard answers a person's yes with a truthy text", options: (b) => ({ guard: { allows: () => (b.on ? ("true" as never) : true) } }), attempt: confirms, ends: "dependency_denied", says: /Ask again/ },
  { part: "there is no checkpoint handler", attempt: scraps, ends: "denied", says: /there is no person to ask/ },
  { part: "the checkpoint handler throws", options: () => ({ checkpoint: fails }), attempt: scraps, ends: "denied", says: /broken on purpose.*Nothing was executed/s },
  { part: "the checkpoint handler gives an unknown answer", options: () => ({ checkpoint: () => ({ answer: "maybe" }) as never }), attempt: scraps, ends: "denied", says: /neither go, refuse nor cancelled/ },
  { part: "a gate policy crashes", options: () => ({ gatePolicies: [{ name: "house", points: [], check: fails }] }), attempt: asks, ends: "denied", says: /policy "?house"? failed.*Tell the operator/s },
  { part: "a gate policy crashes after the approval", options: (b) => ({ gatePolicies: [{ name: "house", points: ["pre-tool"], check: () => (b.on ? fails() : []) }] }), attempt: confirms, ends: "failed", says: /Tell the operator/ },
  { part: "the tool cannot say what it touches", options: () => ({ tools: [lying("resources")] }), attempt: asks, ends: "failed", says: /was not called.*Tell the operator/s },
  { part: "the tool cannot read its input", options: () => ({ tools: [lying("input")] }), attempt: asks, ends: "failed", says: /broken on purpose.*Tell the operator/s },
  { part: "a hook throws", options: () => ({ hooks: [{ name: "h", points: ["before_tool"], handle: fails }] }), attempt: asks, ends: "denied", says: /broken on purpose/ },
  { part: "a hook gives an unknown answer", options: () => ({ hooks: [{ name: "h", points: ["before_tool"], handle: () => ({ answer: "sure" }) as never }] }), attempt: asks, ends: "denied", says: /gave an answer that is none.*Tell the operator/s },
  { part: "a policy rule makes no sense", options: () => ({ policy: { version: "1", rules: [{ id: "r", effect: "allow", tool: "stock.*", path: "not/absolute", reason: "r" }] } }), attempt: never, ends: "invalid_input", says: /path that must be an absolute path/ },
  { part: "an answer to a confirmation that is neither yes nor no", attempt: answersMaybe, ends: "illegal_transition", says: /It is a confirm; answer it as such/ },
  { part: "a yes to another hash", attempt: confirmsOther, ends: "approval_void", says: /does not match what would run/ },
  { part: "confidence is missing", attempt: ships({}), ends: "denied", says: /_confidence/ },
  { part: "confidence is not a number", attempt: ships({ _confidence: "100" }), ends: "denied", says: /_confidence/ },
  { part: "the standing rules cannot be read", table: { name: "standing_rules", of: "reads" }, attempt: asks, ends: "store_unavailable", says: /nothing was written/ },
  { part: "the gate of a delegation crashes", options: () => ({ gatePolicies: [{ name: "house", points: ["pre-delegation"], check: fails }] }), attempt: delegates, ends: "denied", says: /Not delegated.*Tell the operator/s },
  { part: "the store fails to stage", table: { name: "decisions", of: "writes" }, attempt: asks, ends: "store_unavailable", says: /nothing was written/ },
  { part: "the store fails to ask", table: { name: "interactions", of: "writes" }, attempt: asks, ends: "store_unavailable", says: /nothing was written/ },
  { part: "the store fails to ask after a slow review", options: () => slowReview(), table: { name: "interactions", of: "writes" }, attempt: asks, ends: "partly_written", says: /Do not propose it again/ },
  { part: "the store fails to keep a person's yes", table: { name: "interactions", of: "writes" }, attempt: confirms, ends: "store_unavailable", says: /nothing was written/ },
  { part: "the store fails to keep the intent", table: { name: "operations", of: "writes" }, attempt: confirms, ends: "store_unavailable", says: /nothing was written/ },
  { part: "the store fails to keep the intent after a counted yes", options: () => ({ attention: { onProblem: fails } }), table: { name: "operations", of: "writes" }, attempt: confirms, ends: "partly_written", says: /Your yes is stored/ },
];

forEachStore(
  "broken on purpose [I-84]",
  (openStore) => {
    describe("every fail-closed rule [I-84]", () => {
      test.each(ROWS)(
        "$part: no effect, and an answer that says what to do [I-84]",
        async (row) => {
          const place = await openStore();
          const warehouse = buildWarehouse();
          const part: Broken = { on: true };
          const engine =
            row.table === undefined ? place.engine : failing(place.engine, row.table, part);
          const store = createStore(engine, { redact: (_tenant, data) => data });
          const outcome = await outcomeOf(async () => {
            const options = row.options?.(part, warehouse) ?? {};
            const gate = openGate(store, warehouse, { clock: place.clock, ...options });
            return row.attempt(gate, part);
          });
          const [end, text] =
            outcome instanceof Error
              ? [outcome.code, outcome.message]
              : [outcome.answer, outcome.text];
          expect([end, text]).toEqual([row.ends, expect.stringMatching(row.says)]);
          expect(warehouse.ledger).toEqual([]);
          expect([...warehouse.shelves.values()]).toEqual([40, 60, 5]);
          part.on = false;
          const whole = openGate(place.store, warehouse, { clock: place.clock });
          expect(await whole.decisions.list({ states: ["executed"] })).toEqual([]);
          // Denied before a person is asked, or asked and not answered: never executed without a person.
          if (row.ends === "pending") expect(await whole.interactions.list()).toEqual([]);
          expect(await eventsOf(whole), "no effect was begun").not.toContain("operation.started");
          // The same once more with nothing broken does work: it was the broken part that held it back.
          await sayYes(
            whole,
            waitingFor(await whole.sessions.open({ agent: PICKER }).call(take())),
          );
          expect(warehouse.ledger).toEqual(["set bolt 30"]);
        },
      );
    });
  },
  ["memory", "sqlite"],
);

async function outcomeOf(work: () => Promise<Outcome>): Promise<Outcome> {
  try {
    return await work();
  } catch (error) {
    if (isSallyportError(error)) return error as SallyportError;
    throw error;
  }
}

function odd(answer: unknown): Validator {
  return { name: "odd", review: () => answer as never };
}

/** Breaks when it is asked what it would touch, or what it makes of its input. */
function lying(about: "resources" | "input") {
  const honest = defineTool({
    name: "stock.set",
    description: "Sets how many stand on a shelf.",
    input: { type: "object", additionalProperties: true },
    safety: { effect: "external" },
    execute: fails,
  });
  return { ...honest, ...(about === "input" ? { parseInput: fails } : { resources: fails }) };
}

async function answersMaybe(gate: Gate): Promise<Outcome> {
  const id = waitingFor(await open(gate).call(take()));
  const { hash } = await gate.interactions.get(id);
  await gate.interactions.answer(id, { hash, by: ADA, answer: "maybe" });
  return expect.unreachable("a confirmation takes no other answer");
}

async function confirmsOther(gate: Gate): Promise<Outcome> {
  const id = waitingFor(await open(gate).call(take()));
  await gate.interactions.approve(id, { hash: "0".repeat(64), by: ADA });
  return expect.unreachable("another hash is no approval");
}

async function delegates(gate: Gate): Promise<Outcome> {
  const promise = { id: "p-1", statement: "The bolts are counted.", evidence: [] };
  const given = await open(gate).delegate({
    agent: "agent:helper",
    role: "research",
    task: "Count the bolts.",
    capsule: "They are on the shelf bolt.",
    promise,
    tools: ["stock.count"],
  });
  if (given.answer !== "denied") return expect.unreachable(given.answer);
  return { answer: "denied", text: given.text, findings: [] };
}

/** An engine that loses its database on every access to this table. */
function failing(engine: Engine, { name, of }: NonNullable<Row["table"]>, part: Broken): Engine {
  const check = (table: string) => {
    if (part.on && table === name) throw new SallyportError("store_unavailable");
  };
  const reads: Partial<Engine> = {
    async get(tenant, table, id) {
      check(table.name);
      return engine.get(tenant, table, id);
    },
    async find(tenant, table, query) {
      check(table.name);
      return engine.find(tenant, table, query);
    },
  };
  const writes: Partial<Engine> = {
    async commit(tenant, change) {
      for (const step of change.steps) if (step.op !== "require") check(step.table.name);
      return engine.commit(tenant, change);
    },
  };
  return { ...engine, ...(of === "reads" ? reads : writes) };
}
