// T22 over HTTP: what comes in headers, tokens, keys and refused bodies is found nowhere afterwards.

import { mkdtemp, readdir, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { sqliteEngine } from "../../src/store/sqlite/index.ts";
import { systemClock } from "../../src/util/clock.ts";
import { systemRandom } from "../../src/util/random.ts";
import { systemTimers } from "../../src/util/timers.ts";
import { credentials, openHttp, raw } from "./http-world.ts";

const COUNT = process.env["SCALE"] === "full" ? 1_000 : 120;

test("canaries in headers, cookies, keys and refused bodies: not in files, feed, export, metrics or answers [T22 T19]", async () => {
  const folder = await mkdtemp(path.join(tmpdir(), "sallyport-secrets-"));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  const file = path.join(folder, "store.db");
  const engine = sqliteEngine({
    file,
    clock: systemClock,
    random: systemRandom,
    timers: systemTimers,
    patienceMs: 2_000,
  });
  onTestFinished(() => engine.close());
  const world = await openHttp({ engine });
  const tokens = await Promise.all(
    (["agent", "auditor", "admin"] as const).map((role) => world.pass("acme", role)),
  );
  const [agent = "", auditor = "", admin = ""] = tokens;
  const { id } = JSON.parse(
    (
      await raw(`${world.server.url}/v1/sessions`, {
        method: "POST",
        headers: credentials(agent),
        body: "{}",
      })
    ).text,
  ) as { id: string };
  const canaries = Array.from(
    { length: COUNT },
    (_, n) => `c4n4ry${String(n).padStart(5, "0")}x${"9f".repeat(8)}`,
  );
  const heard: string[] = [];
  const stop = new AbortController();
  const listening = (async () => {
    const response = await fetch(`${world.server.url}/v1/events?after=0`, {
      headers: credentials(auditor),
      signal: stop.signal,
    });
    const decoder = new TextDecoder();
    for await (const chunk of response.body as unknown as AsyncIterable<Uint8Array>)
      heard.push(decoder.decode(chunk));
  })().catch(() => {});
  const answers: string[] = [];
  for (const [n, canary] of canaries.entries()) {
    const calls = `${world.server.url}/v1/sessions/${id}/calls`;
    const attempts = [
      () => raw(`${world.server.url}/v1/me`, { headers: { authorization: `Bearer ${canary}` } }),
      () =>
        raw(`${world.server.url}/v1/me`, {
          headers: { ...credentials(agent), "x-api-key": canary, cookie: `session=${canary}` },
        }),
      () =>
        raw(calls, {
          method: "POST",
          headers: credentials(agent),
          body: JSON.stringify({ callId: "c", tool: 1, input: canary }),
        }),
      () =>
        raw(calls, { method: "POST", headers: credentials(agent), body: `{"callId":"${canary}` }),
      () =>
        raw(calls, {
          method: "POST",
          headers: { ...credentials(agent), "content-type": canary },
          body: `{"a":"${canary}"}`,
        }),
      () =>
        raw(`${world.server.url}/v1/tokens`, {
          method: "POST",
          headers: { ...credentials(admin), "idempotency-key": canary },
          body: JSON.stringify({ subject: `agent:${n}`, roles: ["agent"] }),
        }),
      () =>
        raw(`${world.server.url}/signin`, {
          method: "POST",
          headers: { "content-type": "application/x-www-form-urlencoded" },
          body: `link=${canary}`,
        }),
    ];
    const sent = await attempts[n % attempts.length]!();
    answers.push(sent.text);
  }
  for (const route of ["/v1/audit/export", "/metrics", "/v1/tokens", "/v1/audit?limit=500"]) {
    const by = route === "/v1/tokens" ? admin : auditor;
    answers.push((await raw(`${world.server.url}${route}`, { headers: credentials(by) })).text);
  }
  const { seq } = await world.store.tenant("acme").audit.head();
  while (!heard.join("").includes(`id: ${seq}\n`))
    await new Promise((resolve) => setTimeout(resolve, 5));
  stop.abort();
  await listening;
  const made = answers
    .map((text) => /"secret":"(sallyport_[^"]+)"/.exec(text)?.[1])
    .filter((text) => text !== undefined);
  expect(made.length).toBeGreaterThan(5);
  const files = await Promise.all(
    (await readdir(folder)).map((name) => readFile(path.join(folder, name), "latin1")),
  );
  const disk = files.join("\n");
  expect(disk.length).toBeGreaterThan(10_000);
  const found: string[] = [];
  for (const canary of canaries) {
    if (disk.includes(canary)) found.push(`on disk: ${canary}`);
    if (heard.join("").includes(canary)) found.push(`in the feed: ${canary}`);
    if (answers.some((text) => text.includes(canary))) found.push(`in an answer: ${canary}`);
  }
  // Of a session both halves.
  const randoms = [...tokens, ...made].flatMap((text) => text.match(/[\w-]{43}/g) ?? []);
  expect(randoms).toHaveLength(tokens.length + made.length + 1);
  for (const random of randoms) {
    if (disk.includes(random)) found.push("a token on disk");
    if (heard.join("").includes(random)) found.push("a token in the feed");
  }
  expect(found).toEqual([]);
  console.info(`secrets: ${COUNT} canaries and ${tokens.length + made.length} tokens, 0 found`);
}, 120_000);

test("an internal error is reported to the operator and not to the sender [T22]", async () => {
  const world = await openHttp();
  const canary = "c4n4ry-in-a-stack";
  Object.assign(world.gates.acme.killSwitch, {
    look: () => Promise.reject(new Error(`database password is ${canary}`)),
  });
  const headers = credentials(await world.pass("acme", "operator"));
  const sent = await raw(`${world.server.url}/v1/switch`, { headers });
  expect(sent.status).toBe(500);
  expect(JSON.parse(sent.text)).toMatchObject({ code: "internal_error" });
  expect(sent.text).not.toContain(canary);
  expect(String(world.problems[0])).toContain(canary);
});
