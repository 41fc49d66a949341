import { execFile } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { setTimeout } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import Sqlite from "better-sqlite3";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { engineCases, runCase } from "../../src/store/conformance/index.ts";
import { change, insert, soundTrail } from "../../src/store/conformance/samples.ts";
import { sqliteStore } from "../../src/store/sqlite/index.ts";
import { WriteThread } from "../../src/store/sqlite/write-thread.ts";
import { isWanted, type StoreMaker, startSqlite } from "../support/stores.ts";

/** What a second thread could break: the order of things, who fails with whom, and closing. */
const TELLING = /^(group|takers|steps|close|durable|many processes|require: T38|trail: an event)/;
const cases = engineCases.filter(
  ({ name }) => process.env["SCALE"] === "full" || TELLING.test(name),
);

// skip: STORES names the stores to test, and this is not one of them
describe.skipIf(!isWanted("sqlite"))("sqlite, always by the write thread", () => {
  let stores: StoreMaker;
  let folder: string;
  beforeAll(async () => {
    stores = await startSqlite("always");
    folder = await mkdtemp(path.join(tmpdir(), "sallyport-thread-"));
  });
  afterAll(async () => {
    await stores.stop();
    await rm(folder, { recursive: true, force: true });
  });

  test.each(cases.map((one) => [one.name, one] as const))("%s", async (_, one) => {
    const { outcome, error } = await runCase(() => stores.open(), one);
    if (outcome === "failed") throw error;
  });

  test("a change that the database refuses fails alone with its own code, even on the write thread [S0-104]", async () => {
    const { engine, place, close } = await stores.open();
    onTestFinished(close);
    const direct = new Sqlite(place.kind === "sqlite" ? place.file : "");
    onTestFinished(() => void direct.close());
    direct.exec(
      "CREATE TRIGGER odd BEFORE INSERT ON decisions WHEN NEW.id = 'odd' BEGIN SELECT RAISE(ABORT, 'no'); END",
    );
    const ids = ["a", "b", "odd", "c"];
    const all = ids.map((id) => engine.commit("acme", change([insert(id)])));
    const settled = await Promise.allSettled(all);
    expect(settled.map(({ status }) => status === "fulfilled")).toEqual([true, true, false, true]);
    await expect(all[2]).rejects.toMatchObject({ code: "invalid_input" });
    expect(await soundTrail(engine)).toHaveLength(3);
  });

  test("two changes keep their order when the thread could not write the first [SL4]", async () => {
    const { engine, place, close } = await stores.open();
    onTestFinished(close);
    const other = new Sqlite(place.kind === "sqlite" ? place.file : "");
    onTestFinished(() => void other.close());
    const wanted: string[] = [];
    const asked: Promise<unknown>[] = [];
    const ask = (id: string) => {
      wanted.push(id);
      asked.push(engine.commit("acme", change([insert(id)])));
    };
    ask("warm");
    await asked[0];
    for (let round = 0; round < 20; round += 1) {
      // While another process holds the file, the thread hands the first one back to the main thread, which waits for it.
      other.exec("BEGIN IMMEDIATE");
      ask(`${round} first`);
      await setTimeout(round);
      other.exec("COMMIT");
      ask(`${round} second`);
      await setTimeout(0);
      ask(`${round} third`);
      await Promise.all(asked);
    }
    const entries = await soundTrail(engine);
    expect(entries.map(({ subject }) => subject)).toEqual(wanted);
  });

  test("a thread that cannot start, or has ended, takes nothing", async () => {
    const thread = new WriteThread({ file: path.join(folder, "no", "such.db"), patienceMs: 0 });
    await thread.started;
    expect(thread.state).toBe("ended");
    expect(await thread.write([], () => undefined)).toBeUndefined();
    await thread.close();
  });

  test("a thread that dies while it writes leads to commit_unknown", async () => {
    const body = new URL("../support/dying-thread.ts", import.meta.url);
    const thread = new WriteThread({ file: "", patienceMs: 0 }, body);
    await thread.started;
    const lost = { code: "commit_unknown" };
    await expect(thread.write([], () => undefined)).rejects.toMatchObject(lost);
    expect(await thread.write([], () => undefined)).toBeUndefined();
  });

  test("where no thread may be started, everything is written by the main thread [SM3]", async () => {
    const file = path.join(folder, "no-threads.db");
    const child = fileURLToPath(new URL("../support/busy-child.ts", import.meta.url));
    const permission = [
      "--permission",
      "--allow-fs-read=*",
      "--allow-fs-write=*",
      "--allow-addons",
    ];
    const { stdout } = await promisify(execFile)(
      process.execPath,
      [...permission, "--disable-warning=SecurityWarning", child, file],
      { timeout: 100_000 },
    );
    expect(stdout).toBe("200 written");
  });

  test("an unclosed store lets the process end, and acknowledged changes are stored", async () => {
    const file = path.join(folder, "left-open.db");
    const child = fileURLToPath(new URL("../support/busy-child.ts", import.meta.url));
    const { stdout } = await promisify(execFile)(process.execPath, [child, file], {
      timeout: 100_000,
    });
    expect(stdout).toBe("200 written");
    const store = sqliteStore({ file });
    expect((await store.tenant("acme").audit.head()).seq).toBe(200);
    await store.close();
  });
});
