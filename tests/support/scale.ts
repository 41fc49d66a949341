/** How much a test does: a little in `npm test`, more in `npm run proof`, all of it with `SCALE=full`. */
export type Scale = "test" | "proof" | "full";

export const SCALE: Scale = scaleOf(process.env["SCALE"]);

export function scaled<Value>(sizes: Readonly<Record<Scale, Value>>): Value {
  return sizes[SCALE];
}

function scaleOf(word = "test"): Scale {
  if (word === "test" || word === "proof" || word === "full") return word;
  throw new Error(`SCALE is "${word}"; it can be test, proof or full`);
}
