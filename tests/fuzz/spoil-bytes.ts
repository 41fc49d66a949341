// What disks, copies and people do to files.

import type { Dice } from "../support/dice.ts";

export type SpoilBytes = (bytes: Buffer, dice: Dice, old: Buffer) => Buffer;

const PAGE = 4_096;

export const SPOILERS: Readonly<Record<string, SpoilBytes>> = {
  "bit flip"(bytes, { below }) {
    const changed = Buffer.from(bytes);
    flip(changed, below(changed.length), below(8));
    return changed;
  },
  "many bits"(bytes, { below }) {
    const changed = Buffer.from(bytes);
    for (let left = 2 + below(60); left > 0; left -= 1)
      flip(changed, below(changed.length), below(8));
    return changed;
  },
  "torn write"(bytes, { below }) {
    const changed = Buffer.from(bytes);
    const at = below(changed.length);
    changed.fill(0, at, Math.min(at + 1 + below(512), changed.length));
    return changed;
  },
  "cut tail": (bytes, { below }) => bytes.subarray(0, below(bytes.length)),
  "swapped pages"(bytes, { below }) {
    const pages = Math.floor(bytes.length / PAGE);
    const changed = Buffer.from(bytes);
    const [a, b] = [below(pages) * PAGE, below(pages) * PAGE];
    bytes.copy(changed, a, b, b + PAGE);
    bytes.copy(changed, b, a, a + PAGE);
    return changed;
  },
  /** A write that the disk said it had made, and had not. */
  "lost page"(bytes, { below }, old) {
    const changed = Buffer.from(bytes);
    const at = below(Math.max(1, Math.floor(Math.min(old.length, bytes.length) / PAGE))) * PAGE;
    old.copy(changed, at, at, Math.min(at + PAGE, old.length));
    return changed;
  },
  "old copy": (_bytes, _dice, old) => Buffer.from(old),
  "end from an old copy"(bytes, { below }, old) {
    const at = below(Math.min(bytes.length, old.length));
    return Buffer.concat([bytes.subarray(0, at), old.subarray(at)]);
  },
  garbage(bytes, { below }) {
    const changed = Buffer.from(bytes);
    const at = below(changed.length);
    for (let next = at; next < Math.min(at + 200, changed.length); next += 1)
      changed[next] = below(256);
    return changed;
  },
};

function flip(bytes: Buffer, at: number, bit: number): void {
  bytes[at] = (bytes[at] ?? 0) ^ (1 << bit);
}

/** The same for files of lines. */
export const LINE_SPOILERS: Readonly<Record<string, SpoilBytes>> = {
  "bit flip": always("bit flip"),
  "many bits": always("many bits"),
  "torn write": always("torn write"),
  "cut tail": always("cut tail"),
  garbage: always("garbage"),
  "old copy": always("old copy"),
  "swapped lines": (bytes, { below }) =>
    lines(bytes, (all) => {
      const [a, b] = [below(all.length), below(all.length)];
      [all[a], all[b]] = [all[b] ?? "", all[a] ?? ""];
    }),
  "lost line": (bytes, { below }) => lines(bytes, (all) => all.splice(below(all.length), 1)),
  "doubled line": (bytes, { below }) =>
    lines(bytes, (all) => all.splice(below(all.length), 0, all[below(all.length)] ?? "")),
  "cut head": (bytes, { below }) => bytes.subarray(below(bytes.length)),
};

function always(name: string): SpoilBytes {
  return SPOILERS[name] ?? ((bytes) => bytes);
}

function lines(bytes: Buffer, change: (all: string[]) => unknown): Buffer {
  const all = bytes.toString("utf8").split("\n");
  change(all);
  return Buffer.from(all.join("\n"));
}
