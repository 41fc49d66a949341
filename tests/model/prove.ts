// G15: random sequences of calls against a store and against a model of a few lines; both must always say the same.

import { randomInt } from "node:crypto";
import fc from "fast-check";
import { expect, test } from "vitest";
import { isSallyportError, type SallyportError } from "../../src/model/errors.ts";
import { soundTrail } from "../../src/store/conformance/samples.ts";
import type { Store, TenantStore } from "../../src/store/store.ts";
import type { ManualClock } from "../../src/util/clock.ts";
import { forEachStore } from "../support/for-each-store.ts";
import { record } from "../support/record.ts";
import { scaled } from "../support/scale.ts";
import type { TestStore } from "../support/stores.ts";
import { assertRebuilt } from "./rebuild-nouns.ts";

/** Of all models on all stores together. */
const SEQUENCES = scaled({ test: 200, proof: 2_000, full: 10_000 });
const MODELS = 4;
/** The slowest store has the smallest part. */
const PARTS = { memory: 0.4, sqlite: 0.4, postgres: 0.2 };
const LONGEST = 40;
/** So many sequences come through everything there is. */
const ENOUGH = 100;

/** One sequence's own tenant, reached through two stores on the same data where the engine can be opened twice. */
export interface Ground {
  readonly number: number;
  readonly tenant: string;
  readonly harness: TestStore;
  readonly stores: readonly Store[];
  readonly clock: ManualClock;
}

export interface Proof<Model, Real> {
  readonly what: string;
  readonly commands: fc.Arbitrary<fc.AsyncCommand<object, object>>[];
  begin(ground: Ground): { model: Model; real: Real };
  /** Compares everything that is stored with everything that the model knows. */
  end(model: Model, real: Real): Promise<void>;
  /** What this sequence came through, as words to be counted. */
  seen(model: Model): readonly string[];
  /** Words that must have come up, or nothing was proved. */
  readonly mustSee: readonly string[];
}

export function prove<Model extends object, Real extends object>(proof: Proof<Model, Real>): void {
  forEachStore(proof.what, (open) => {
    test("real = model after every call, the chain verifies, the trail gives the same state [I15 I17 I20]", async () => {
      const harness = await open();
      const second = await harness.again?.();
      const stores = second === undefined ? [harness.store] : [harness.store, second.store];
      const seed = Number(process.env["FC_SEED"] ?? randomInt(2 ** 31));
      const counts = { sequences: 0, calls: 0, entries: 0, violations: 0 };
      const seen: Record<string, number> = {};
      const property = fc.asyncProperty(sequences(proof.commands), async (commands) => {
        counts.sequences += 1;
        const number = counts.sequences;
        const tenant = `tenant-${number}`;
        const started = proof.begin({ number, tenant, harness, stores, clock: harness.clock });
        await fc.asyncModelRun(() => started, commands);
        await proof.end(started.model, started.real);
        const trail = await soundTrail(harness.engine, tenant);
        await assertRebuilt(trail, harness.store.tenant(tenant));
        counts.calls += [...commands].length;
        counts.entries += trail.length;
        for (const word of proof.seen(started.model)) seen[word] = (seen[word] ?? 0) + 1;
      });
      const numRuns = Math.ceil((SEQUENCES * PARTS[harness.place.kind]) / MODELS);
      // A failure prints seed, path and replayPath; FC_SEED, FC_PATH and FC_REPLAY take them.
      const path = process.env["FC_PATH"];
      const run = fc.assert(property, { numRuns, seed, ...(path === undefined ? {} : { path }) });
      await run.catch((error: unknown) => {
        counts.violations += 1;
        report();
        throw error;
      });
      report();
      if (path !== undefined) return;
      expect(counts.sequences, "void: too few sequences").toBeGreaterThanOrEqual(numRuns);
      expect(counts.calls, "void: too few calls").toBeGreaterThan(numRuns * 3);
      expect(counts.entries, "void: too little was written").toBeGreaterThan(numRuns);
      if (numRuns < ENOUGH) return;
      expect(Object.keys(seen), "void: something never came up").toEqual(
        expect.arrayContaining([...proof.mustSee]),
      );

      function report(): void {
        const what = `${proof.what} on ${harness.place.kind}`;
        record({ goal: "G15", what, figures: { ...counts, ...seen }, seed });
      }
    }, 3_600_000);
  });
}

function sequences(commands: fc.Arbitrary<fc.AsyncCommand<object, object>>[]) {
  const replayPath = process.env["FC_REPLAY"];
  const replay = replayPath === undefined ? {} : { replayPath };
  return fc.commands(commands, { maxCommands: LONGEST, size: "max", ...replay });
}

/** One kind of call with its random arguments; `run` makes it on both sides and compares. */
export function command<Model extends object, Real extends object, Arguments>(
  name: string,
  given: fc.Arbitrary<Arguments>,
  run: (model: Model, real: Real, given: Arguments) => Promise<void>,
): fc.Arbitrary<fc.AsyncCommand<object, object>> {
  return given.map((one) => ({
    check: () => true,
    run: (model, real) => run(model as Model, real as Real, one),
    toString: () => `${name}(${fc.stringify(one)})`,
  }));
}

/** Which record a call is about: mostly one that is there, now and then (at place `count`) one that is not. */
export const choices = fc.nat({ max: 1_000 });

export function chosen(choice: number, count: number): number {
  return choice % 12 === 0 ? count : choice % Math.max(count, 1);
}

/** What a call answered as one word, which a model can say too: the given view of its value, or `!` and the error's code. */
export async function said<Value>(
  call: Promise<Value>,
  view: (value: Value) => string,
): Promise<string> {
  try {
    return view(await call);
  } catch (error) {
    if (isSallyportError(error)) return `!${(error as SallyportError).code}`;
    throw error;
  }
}

export function tenantOf(ground: Ground, place: number): TenantStore {
  const store = ground.stores[place % ground.stores.length] ?? ground.harness.store;
  return store.tenant(ground.tenant);
}
