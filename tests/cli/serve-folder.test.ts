// Who else may use the data folder of a running server: other users of the machine, and a second server.

import {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  writeFileSync,
} from "node:fs";
import path from "node:path";
import { expect, test, vi } from "vitest";
import { cliPlace } from "./cli-process.ts";

const modeOf = (file: string) => (statSync(file).mode & 0o777).toString(8);

/** Every file and folder below, with its mode. */
function modesIn(folder: string): Record<string, string> {
  const found: Record<string, string> = { ".": modeOf(folder) };
  for (const name of readdirSync(folder, { recursive: true, encoding: "utf8" })) {
    found[name] = modeOf(path.join(folder, name));
  }
  return found;
}

function expectPrivate(folder: string): void {
  const wide = Object.entries(modesIn(folder)).filter(([name, mode]) => {
    const isFolder = statSync(path.join(folder, name)).isDirectory();
    return mode !== (isFolder ? "700" : "600");
  });
  expect(wide).toEqual([]);
}

test("serve and demo: data and state folder are 0700 and every file in them 0600 [L10]", async () => {
  const place = cliPlace();
  const demo = await place.start("demo", "--every", "200");
  await vi.waitFor(
    () => expect(existsSync(path.join(place.data, "sallyport.db-wal"))).toBe(true),
    60_000,
  );
  const names = Object.keys(modesIn(place.data));
  expect(names).toEqual(expect.arrayContaining(["sallyport.db", "warehouse.db", "local.json"]));
  expectPrivate(place.data);
  expectPrivate(place.state);
  const copy = path.join(place.folder, "copy.db");
  expect(await place.run("store", "backup", copy)).toMatchObject({ code: 0 });
  expect(modeOf(copy)).toBe("600");
  expect(await demo.stop()).toBe(0);
  chmodSync(copy, 0o644);
  const other = path.join(place.folder, "other");
  expect(await place.run("--data", other, "store", "restore", copy)).toMatchObject({ code: 0 });
  expectPrivate(other);
});

test("serve: permissions of a data folder that others could read are tightened at startup [L10]", async () => {
  const place = cliPlace();
  await (await place.start("demo")).stop();
  chmodSync(place.data, 0o755);
  for (const name of readdirSync(place.data)) chmodSync(path.join(place.data, name), 0o644);
  const demo = await place.start("demo");
  expectPrivate(place.data);
  await demo.stop();
});

test("serve: a folder with foreign, world-readable files is refused with an explanation [L10]", async () => {
  const place = cliPlace({}, "shared");
  mkdirSync(place.data);
  chmodSync(place.data, 0o755);
  writeFileSync(path.join(place.data, "notes.txt"), "not ours");
  const { code, err } = await place.run("serve");
  expect(code).toBe(3);
  expect(err).toContain(`chmod 700 ${place.data}`);
  expect(readdirSync(place.data)).toEqual(["notes.txt"]);
  expect(modeOf(place.data)).toBe("755");
});

test("serve: a second server over the same data folder is refused and names pid, url and folder [W2]", async () => {
  const place = cliPlace();
  const first = await place.start("demo");
  const access = readFileSync(path.join(place.data, "local.json"), "utf8");
  for (const command of ["serve", "demo"]) {
    const second = await place.run(command);
    expect(second.code).toBe(3);
    expect(second.err).toContain(`pid ${first.child.pid}`);
    expect(second.err).toContain(first.url);
    expect(second.err).toContain(place.data);
  }
  expect(readFileSync(path.join(place.data, "local.json"), "utf8")).toBe(access);
  expect((await place.run("status")).code).toBe(0);
  await first.stop();
  expect(existsSync(path.join(place.data, "local.json"))).toBe(false);
});

test("serve: after kill -9 the folder is free again, and the next server's access file is kept [W2]", async () => {
  const place = cliPlace();
  const first = await place.start("serve");
  await first.kill();
  const second = await place.start("serve");
  const { pid, url } = JSON.parse(readFileSync(path.join(place.data, "local.json"), "utf8"));
  expect({ pid, url }).toEqual({ pid: second.child.pid, url: second.url });
  // Whatever is in the file when a server ends, it removes only what it wrote itself.
  const foreign = JSON.stringify({ url: "http://127.0.0.1:9", token: "t", pid: 1 });
  writeFileSync(path.join(place.data, "local.json"), foreign);
  expect(await second.stop()).toBe(0);
  expect(readFileSync(path.join(place.data, "local.json"), "utf8")).toBe(foreign);
});
