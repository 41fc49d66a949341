// Data folders that are not what they should be.

import { mkdirSync, writeFileSync } from "node:fs";
import path from "node:path";
import Sqlite from "better-sqlite3";
import { sampleDraft } from "../../src/store/conformance/samples.ts";
import { sqliteStore } from "../../src/store/sqlite/index.ts";
import type { Dice } from "../support/dice.ts";

/** A good store's file, to be spoiled. */
export async function goodStore(file: string): Promise<void> {
  const store = sqliteStore({ file });
  const { decisions } = store.tenant("default");
  for (let count = 0; count < 20; count += 1) await decisions.stage(sampleDraft());
  await store.close();
}

type Spoil = (folder: string, good: Buffer, dice: Dice) => void;

const db = (folder: string) => path.join(folder, "sallyport.db");
const local = (folder: string, text: string) =>
  writeFileSync(path.join(folder, "local.json"), text);

/** Each makes a folder that no command about the store can work with. */
export const SPOILED: Readonly<Record<string, Spoil>> = {
  "not a database": (folder) =>
    writeFileSync(db(folder), "this is a letter to my aunt\n".repeat(99)),
  "random bytes": (folder, _, { below }) =>
    writeFileSync(db(folder), Buffer.from(Array.from({ length: 9_000 }, () => below(256)))),
  "cut in the middle": (folder, good, { below }) =>
    writeFileSync(db(folder), good.subarray(0, 4_096 + below(good.length - 8_192))),
  "cut in its header": (folder, good, { below }) =>
    writeFileSync(db(folder), good.subarray(0, 1 + below(99))),
  "a folder instead of a file": (folder) => mkdirSync(db(folder)),
  "another program's": (folder) => {
    const other = new Sqlite(db(folder));
    other.exec("CREATE TABLE songs (title TEXT); INSERT INTO songs VALUES ('mine')");
    other.close();
  },
  "from the future": (folder, good) => {
    writeFileSync(db(folder), good);
    const future = new Sqlite(db(folder));
    future.pragma("user_version = 9999");
    future.close();
  },
  "no header": (folder, good) =>
    writeFileSync(db(folder), Buffer.concat([Buffer.alloc(100), good.subarray(100)])),
};

/** The file that tells commands where the server is. */
export const SPOILED_ACCESS: Readonly<Record<string, Spoil>> = {
  "no JSON": (folder) => local(folder, "{oops"),
  empty: (folder) => local(folder, ""),
  "another shape": (folder) => local(folder, '{"url":1,"token":[]}'),
  null: (folder) => local(folder, "null"),
  poisoned: (folder) => local(folder, '{"__proto__":{"url":"http://127.0.0.1:1","token":"x"}}'),
  "no address": (folder) => local(folder, '{"url":"not an address","token":"x","pid":1}'),
  "another scheme": (folder) => local(folder, '{"url":"file:///etc","token":"x","pid":1}'),
  "a token that is no header": (folder) =>
    local(folder, '{"url":"http://127.0.0.1:9","token":"a\\r\\nb","pid":1}'),
  "a folder": (folder) => mkdirSync(path.join(folder, "local.json")),
};
