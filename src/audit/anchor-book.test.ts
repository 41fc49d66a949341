import { expect, test } from "vitest";
import { makeTrail, PUBLIC_KEYS, START } from "../../tests/audit/fixtures.ts";
import { headAfter } from "../model/audit-entry.ts";
import { AnchorBook } from "./anchor-book.ts";
import { publicKeys } from "./signing-key.ts";

const limits = { everyEntries: 64, everyMs: 10_000 };
const heads = (count: number) => makeTrail("a", count).slice(-1).map(headAfter);
const DAY = 86_400_000;

function newBook(): AnchorBook {
  const book = new AnchorBook("w", publicKeys(PUBLIC_KEYS));
  book.look([], START, limits);
  return book;
}

test("the first check anchors everything, later ones what is due by number or by time", () => {
  const fresh = new AnchorBook("w", publicKeys(PUBLIC_KEYS));
  expect(fresh.look(heads(1), START, limits)).toHaveLength(1);
  const book = newBook();
  expect(book.look(heads(63), START + 5_000, limits)).toHaveLength(0);
  expect(book.waiting).toEqual({ entries: 63, since: START });
  expect(book.look(heads(64), START + 5_001, limits)).toHaveLength(1);
  expect(book.look(heads(63), START + 9_999, limits)).toHaveLength(0);
  expect(book.look(heads(63), START + 10_000, limits)).toHaveLength(1);
});

test("a clock that jumps back a day costs one interval, not a day [G12]", () => {
  const book = newBook();
  expect(book.look(heads(1), START + 1, limits)).toHaveLength(0);
  expect(book.look(heads(1), START - DAY, limits)).toHaveLength(0);
  expect(book.look(heads(1), START - DAY + 10_000, limits)).toHaveLength(1);
});
