import assert from "node:assert/strict";
import { DECISIONS } from "../decision-rows.ts";
import type { Row } from "../engine.ts";
import type { EngineCase } from "./case.ts";
import { TENANT } from "./harness.ts";
import { change, event, insert, plain, soundTrail, update, written } from "./rows.ts";
import { bytes, together } from "./samples.ts";

const ALL_BYTES = Uint8Array.from({ length: 256 }, (_, byte) => byte);
/** What tends to get lost between a program and its database. NUL stands inside as JSON writes it. */
const HARD_TEXTS: readonly string[] = [
  "",
  " leading and trailing ",
  "Grüße, 日本語, עברית, e\u0301, 👩‍👩‍👧",
  "'; DROP TABLE decisions; --",
  '"quotes" \\ backslash \\u0041 $1 ? :name %s {"a":[1]}',
  JSON.stringify({ nul: "a\u0000b", lone: "\ud800", tab: "\t", line: "\r\n" }),
  "null",
  "true",
  "0012",
  "\u2028\u2029\u0085\ufeff",
  "x".repeat(100_000),
];

const ids = (rows: readonly Row[]) => rows.map((row) => row["id"]);

/** Reading rows back. */
export const engineFindCases: readonly EngineCase[] = [
  {
    name: "find: rows come in the order they were inserted, whatever their ids and times are",
    async run({ engine, clock }) {
      for (const id of ["m", "z", "a"]) {
        await written(engine, [insert(id)]);
        clock.advance(10);
      }
      await written(engine, [insert("b", { created_at: 0 }), insert("c")]);
      await written(engine, [update("m", {}, { state: "pending_ml" })]);
      const rows = await engine.find(TENANT, DECISIONS, { limit: 10 });
      assert.deepEqual(ids(rows), ["m", "z", "a", "b", "c"]);
      const ords = rows.map((row) => Number(row["ord"]));
      assert.deepEqual(
        ords,
        ords.toSorted((one, other) => one - other),
      );
      assert.equal(new Set(ords).size, 5);
    },
  },
  {
    name: "find: changes asked for together are inserted in the order they were asked for",
    async run({ engine }) {
      await together(100, (index) => written(engine, [insert(`id-${index}`)]));
      const rows = await engine.find(TENANT, DECISIONS, { limit: 1_000 });
      const asked = Array.from({ length: 100 }, (_, index) => `id-${index}`);
      assert.deepEqual(ids(rows), asked);
      assert.deepEqual(
        (await soundTrail(engine)).map((entry) => entry.subject),
        asked,
      );
    },
  },
  {
    name: "find: pages by ord see every row once, also when rows change in between",
    async run({ engine }) {
      await together(10, (index) => written(engine, [insert(`id-${index}`)]));
      const seen: unknown[] = [];
      for (let afterOrd = 0; ; ) {
        const page = await engine.find(TENANT, DECISIONS, { afterOrd, limit: 3 });
        assert.ok(page.length <= 3);
        if (page.length === 0) break;
        seen.push(...ids(page));
        afterOrd = Number(page.at(-1)?.["ord"]);
        await written(engine, [update("id-0", {}, { source_tool: `page ${afterOrd}` })]);
      }
      assert.deepEqual(
        seen,
        Array.from({ length: 10 }, (_, index) => `id-${index}`),
      );
    },
  },
  {
    name: "find: newest first, pages by ord go backwards and see every row once",
    async run({ engine }) {
      for (let index = 0; index < 7; index += 1) await written(engine, [insert(`id-${index}`)]);
      const seen: unknown[] = [];
      for (let before: { beforeOrd?: number } = {}; ; ) {
        const query = { ...before, newestFirst: true, limit: 3 } as const;
        const page = await engine.find(TENANT, DECISIONS, query);
        if (page.length === 0) break;
        seen.push(...ids(page));
        before = { beforeOrd: Number(page.at(-1)?.["ord"]) };
        await written(engine, [insert(`later-${seen.length}`)]);
      }
      assert.deepEqual(
        seen,
        Array.from({ length: 7 }, (_, index) => `id-${6 - index}`),
      );
    },
  },
  {
    name: "find: limit keeps the first, also together with a condition; zero gives none",
    async run({ engine }) {
      for (let index = 0; index < 6; index += 1) {
        const state = index % 2 === 0 ? "approved" : "failed";
        await written(engine, [insert(`id-${index}`, { state })]);
      }
      const where = { state: "failed" };
      assert.deepEqual(ids(await engine.find(TENANT, DECISIONS, { limit: 2 })), ["id-0", "id-1"]);
      const failed = await engine.find(TENANT, DECISIONS, { where, limit: 2 });
      assert.deepEqual(ids(failed), ["id-1", "id-3"]);
      const after = Number(failed.at(-1)?.["ord"]);
      const rest = await engine.find(TENANT, DECISIONS, { where, afterOrd: after, limit: 2 });
      assert.deepEqual(ids(rest), ["id-5"]);
      assert.deepEqual(await engine.find(TENANT, DECISIONS, { limit: 0 }), []);
    },
  },
  {
    name: "find: follows a row from one value of an indexed column to the next",
    async run({ engine }) {
      await written(engine, [insert("a")]);
      const inState = async (state: string) =>
        ids(await engine.find(TENANT, DECISIONS, { where: { state }, limit: 10 }));
      assert.deepEqual(await inState("pending_tech"), ["a"]);
      await written(engine, [update("a", {}, { state: "pending_ml" })]);
      assert.deepEqual(await inState("pending_tech"), []);
      assert.deepEqual(await inState("pending_ml"), ["a"]);
    },
  },
  {
    name: "tenants: neither rows nor ids nor trails of one are seen or touched by another",
    async run({ engine }) {
      await written(engine, [insert("same", { source_tool: "ours" })], "acme");
      await written(engine, [insert("same", { source_tool: "theirs" })], "globex");
      await written(engine, [insert("only-theirs")], "globex");
      const ours = plain(await engine.get("acme", DECISIONS, "same"));
      assert.equal(ours?.["source_tool"], "ours");
      assert.equal(await engine.get("acme", DECISIONS, "only-theirs"), undefined);
      assert.deepEqual(ids(await engine.find("acme", DECISIONS, { limit: 10 })), ["same"]);
      const meddle = update("only-theirs", {}, { source_tool: "ours now" });
      assert.equal((await engine.commit("acme", change([meddle]))).committed, false);
      await written(engine, [update("same", {}, { source_tool: "changed" })], "globex");
      assert.deepEqual(plain(await engine.get("acme", DECISIONS, "same")), ours);
      assert.equal((await soundTrail(engine, "acme")).length, 1);
      assert.equal((await soundTrail(engine, "globex")).length, 3);
      assert.equal((await soundTrail(engine, "initech")).length, 0);
    },
  },
  {
    name: "cells: S0-11 every byte value, no bytes at all and large payloads round trip",
    async run({ engine }) {
      const large = new Uint8Array(1024 * 1024).map((_, index) => (index * 31) % 256);
      for (const [id, raw] of Object.entries({ all: ALL_BYTES, none: bytes(""), large })) {
        await written(engine, [insert(id, { raw })]);
        const row = await engine.get(TENANT, DECISIONS, id);
        assert.ok(row?.["raw"] instanceof Uint8Array);
        assert.ok(Buffer.from(row["raw"]).equals(raw), id);
      }
    },
  },
  {
    name: "cells: text round trips whatever is in it, in rows and in the trail",
    async run({ engine }) {
      for (const [index, text] of HARD_TEXTS.entries()) {
        const id = `t${index}`;
        const data = { text: text.toWellFormed(), nul: "a\u0000b" };
        await engine.commit(
          TENANT,
          change([insert(id, { diff_metadata: text, metadata: null })], [event(id, data)]),
        );
        const other = update(id, { diff_metadata: text }, { metadata: text });
        await written(engine, [other]);
        const row = await engine.get(TENANT, DECISIONS, id);
        assert.equal(row?.["diff_metadata"], text);
        assert.equal(row?.["metadata"], text);
      }
      const entries = (await soundTrail(engine)).filter((entry) => entry.data !== "{}");
      const texts = entries.map((entry) => JSON.parse(entry.data ?? "").text);
      assert.deepEqual(
        texts,
        HARD_TEXTS.map((text) => text.toWellFormed()),
      );
    },
  },
];
