// The line to PostgreSQL breaks at every packet of one lifecycle: before a request arrives, or before its answer does.

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { expect, inject, test } from "vitest";
import { createDice } from "../support/dice.ts";
import { emptySchema, freshDatabase } from "../support/postgres-database.ts";
import { record } from "../support/record.ts";
import { SCALE, scaled } from "../support/scale.ts";
import { isWanted } from "../support/stores.ts";
import { type Break, breakableLine, DIRECTIONS } from "./breakable-line.ts";
import { addTo, lifeOverPostgres, migrated, NO_FIGURES, recoveredFrom } from "./life-accounts.ts";
import { LEASE_MS, storyOf } from "./lifecycle.ts";
import { startProduction } from "./production/start-production.ts";

/** How many points are tried; at full scale all of them. */
const POINTS = scaled({ test: 4, proof: 64, full: Number.POSITIVE_INFINITY });
const LANES = 3;
/** New ones at the larger scales; the same each time in `npm test`, which is no place for rare finds. */
const SEED = process.env["FAULTS_SEED"] ?? (SCALE === "test" ? "1" : String(Date.now()));
const TENANT = "acme";
/** Long enough for a busy machine: who gives up without a fault never comes to the packet that is to be lost. */
const PATIENCE_MS = 1_000;
/** Longer than what is called safe is repeated, and than an outcome is tried to be written. */
const AWAY_MS = 3 * PATIENCE_MS + LEASE_MS + 300;
const EVERY = POINTS === Number.POSITIVE_INFINITY ? "every packet" : `${POINTS} packets`;

// skip: STORES names the stores to test, and postgres is not one of them
test.skipIf(!isWanted("postgres"))(
  `postgres: with ${EVERY} of a lifecycle lost in turn, nothing is lost, happens twice or is falsely reported as not written to those who repeat what is called safe [G10] [T34] [I9] [I17] [F1] [F2]`,
  async () => {
    console.log(`FAULTS_SEED=${SEED}`);
    const folder = mkdtempSync(path.join(tmpdir(), "sallyport-packets-"));
    const database = await freshDatabase(inject("pgUrl"));
    const production = await startProduction(folder);
    const figures = { points: 0, met: 0, refused: 0, "refused as safe": 0, ...NO_FIGURES };
    const problems: string[] = [];
    let runs = 0;

    async function run(schema: string, where?: Break) {
      runs += 1;
      const name = `run-${runs}`;
      const address = new URL(database.url);
      const line = await breakableLine({ host: address.hostname, port: Number(address.port) });
      address.port = String(line.port);
      if (where !== undefined) line.breakAt(where);
      const how = { schema, patienceMs: PATIENCE_MS, tenant: TENANT, name };
      const lines = await lifeOverPostgres(address.href, how, production.port);
      const packets = { ...line.packets };
      await line.close();
      const life = { tenant: TENANT, story: storyOf(name), lines };
      const ran = await recoveredFrom(database.url, schema, life, production);
      return { packets, lines, ran };
    }

    try {
      const schemas = Array.from({ length: LANES }, (_, n) => `sweep_${n}`);
      for (const schema of schemas) await migrated(database.url, schema);
      const { packets, ran } = await run(schemas[0] ?? "");
      expect(ran.violations).toEqual([]);
      await emptySchema(database.url, schemas[0] ?? "");
      const points = chosen(packets);
      const left = points.values();
      const lane = async (schema: string) => {
        for (const where of left) {
          const { lines, ran, packets: carried } = await run(schema, where);
          const refused = lines.flatMap((line) => ("refused" in line ? [line] : []));
          figures.points += 1;
          figures.met += carried[where.direction] >= where.packet ? 1 : 0;
          figures.refused += refused.length;
          figures["refused as safe"] += refused.filter(({ retry }) => retry === "safe").length;
          addTo(figures, ran.figures);
          const found = ran.violations.map((text) => `${JSON.stringify(where)}: ${text}`);
          // A run over every point takes long: what it finds is shown as it is found.
          if (found.length > 0) console.log(found);
          problems.push(...found);
          await emptySchema(database.url, schema);
        }
      };
      await Promise.all(schemas.map(lane));
      record({
        goal: "G10",
        what: "the line to the database breaks at a packet",
        figures: { ...figures, violations: problems.length },
        seed: SEED,
      });
      console.log(packets, figures);
      expect(problems.slice(0, 20)).toEqual([]);
      expect(figures.points, "void: too few points").toBe(points.length);
      // Requests are sent together or apart as it happens, so the last few may lie behind the end.
      expect(figures.met, "void: too few packets were lost").toBeGreaterThanOrEqual(
        Math.floor(0.9 * points.length),
      );
      expect(figures["refused as safe"], "void: nothing failed").toBeGreaterThan(0);
    } finally {
      await production.stop();
      await database.drop();
      rmSync(folder, { recursive: true, force: true });
    }
  },
  scaled({ test: 120_000, proof: 400_000, full: 4 * 3_600_000 }),
);

/** Every packet in both directions, for a moment and for longer than anybody is patient; or some of them. */
function chosen(packets: Readonly<Record<Break["direction"], number>>): readonly Break[] {
  const all = DIRECTIONS.flatMap((direction) =>
    Array.from({ length: packets[direction] }, (_, n) => n + 1).flatMap((packet) =>
      [0, AWAY_MS].map((awayMs) => ({ direction, packet, awayMs })),
    ),
  );
  if (POINTS >= all.length) return all;
  const dice = createDice(SEED);
  // Even the smallest sample has one that is refused something in the middle of its work.
  const away = all.filter(({ packet, direction, awayMs }) => {
    return awayMs > 0 && Math.abs(packet / packets[direction] - 0.5) < 0.1;
  });
  const picked = new Set([dice.pick(away)]);
  while (picked.size < POINTS) picked.add(dice.pick(all));
  return [...picked];
}
