import { memoryStore } from "../src/store/memory/index.ts";
import { cycles } from "./cycle.ts";
import type { Result } from "./report.ts";
import { median, rounds } from "./rounds.ts";

/** No floor: it shows what our own code costs when the store costs almost nothing. */
export async function* memoryBenches(wanted: (name: string) => boolean): AsyncGenerator<Result> {
  const name = "memory.cycle.64";
  if (!wanted(name)) return;
  await using store = memoryStore();
  const { product } = await rounds({ product: cycles(store, 64, 3_200) }, 5);
  yield { name, value: median(product), unit: "cycles/s" };
}
