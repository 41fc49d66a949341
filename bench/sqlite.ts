import path from "node:path";
import { sqliteStore } from "../src/store/sqlite/index.ts";
import { cycles } from "./cycle.ts";
import { sqliteFloors } from "./floors/sqlite.ts";
import type { Result } from "./report.ts";
import { median, ratio, rounds } from "./rounds.ts";
import { scratch } from "./scratch.ts";

const ROUNDS = 7;
const unit = "cycles/s";

export async function* sqliteBenches(wanted: (name: string) => boolean): AsyncGenerator<Result> {
  for (const sessions of [1, 16, 64]) {
    const name = `sqlite.cycle.${sessions}`;
    if (!wanted(name)) continue;
    await using folder = await scratch();
    await using store = sqliteStore({ file: path.join(folder.dir, "product.db") });
    const floors = sqliteFloors(path.join(folder.dir, "floor.db"));
    const total = sessions === 1 ? 400 : 3_200;
    const rates = await rounds(
      {
        product: cycles(store, sessions, total),
        raw: floors.raw(400),
        "raw+entry": floors.rawWithEntry(400),
        group: floors.group(sessions, total),
      },
      ROUNDS,
    );
    floors.close();
    const value = median(rates.product);
    const goals: Record<number, { [floor: string]: string }> = {
      64: { raw: ">= 5", group: ">= 0.5" },
    };
    for (const against of ["raw", "raw+entry", "group"] as const) {
      const goal = goals[sessions]?.[against];
      const shown = { name, value, unit, against, ratio: ratio(rates.product, rates[against]) };
      yield goal === undefined ? shown : { ...shown, goal };
    }
  }
}
