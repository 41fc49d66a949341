// T20: everything of one tenant, tried by another with valid tokens. R28: the same over every route. R29: over every stream.

import { expect, test } from "vitest";
import { requestOf } from "../../src/client/create-client.ts";
import { PATHS, type RouteName } from "../../src/http/index.ts";
import { ROLES } from "../../src/model/identity.ts";
import { createDice } from "../support/dice.ts";
import { record } from "../support/record.ts";
import { scaled } from "../support/scale.ts";
import { credentials, openHttp, raw } from "./http-world.ts";
import { makeRecords, type Records, sampleInput } from "./matrix-samples.ts";

const SEED = process.env["TENANTS_SEED"] ?? "tenants";
const CALLS = scaled({ test: 1_000, proof: 5_000, full: 100_000 });
const NAMES = (Object.keys(PATHS) as RouteName[]).filter(
  (name) => !/^(?:signIn|service|events|me)\./.test(name) && name !== "audit.export",
);

test("a random walk of one tenant with ids, cursors, hashes and keys of another sees none of its data [T20 R28]", async () => {
  const world = await openHttp();
  const theirs: Records[] = [];
  for (let i = 0; i < 5; i += 1)
    theirs.push(await makeRecords(world, "acme", `agent:canary-acme-${i}`));
  await makeRecords(world, "bolt", "agent:one");
  const tokens = await Promise.all(ROLES.map((role) => world.pass("bolt", role)));
  const operator = await world.pass("acme", "operator");
  const page = await raw(`${world.server.url}/v1/sessions?limit=1`, {
    headers: credentials(operator),
  });
  const { next } = JSON.parse(page.text) as { next: string };
  const before = await world.store.tenant("acme").audit.head();
  const { below, pick } = createDice(SEED);
  const leaks: string[] = [];
  let answered = 0;
  for (let done = 0; done < CALLS; done += 25) {
    const batch = Array.from({ length: 25 }, async () => {
      const name = pick(NAMES);
      const input = { ...sampleInput(name, pick(theirs)) };
      if (PATHS[name].startsWith("GET") && name.endsWith(".list") && below(2) === 0)
        input["cursor"] = next;
      const { method, address, body } = requestOf(name, input);
      const headers = {
        ...credentials(pick(tokens)),
        // What claims to say the tenant says nothing.
        ...(below(3) === 0 ? { "x-tenant": "acme", "x-sallyport-tenant": "acme" } : {}),
        ...(below(3) === 0 && method === "POST" ? { "idempotency-key": `key-${below(50)}` } : {}),
      };
      const sent = await raw(`${world.server.url}${address}`, {
        method,
        headers,
        ...(body === undefined ? {} : { body }),
      });
      answered += 1;
      // Ids that were sent come back in refusals; what must not come is what only the other tenant knows.
      const told = sent.text.replaceAll(/agent:canary-acme-\d:matrix-\d+/g, "(id)");
      if (told.includes("canary-acme")) leaks.push(`${name}: ${told.slice(0, 100)}`);
      if (sent.status >= 500) leaks.push(`${name}: ${sent.status}`);
    });
    await Promise.all(batch);
  }
  const written = (await world.store.tenant("bolt").audit.head()).seq;
  record({
    goal: "T20",
    what: "random walk of one tenant with the ids of the other",
    figures: { calls: answered, routes: NAMES.length, "own entries": written, leaks: leaks.length },
    seed: SEED,
  });
  expect(answered, "void: too few calls").toBeGreaterThanOrEqual(CALLS);
  expect(leaks, `TENANTS_SEED=${SEED}`).toEqual([]);
  expect(await world.store.tenant("acme").audit.head(), "the other tenant's trail").toEqual(before);
  console.info(
    `two tenants: ${answered} requests, 0 canaries seen, 0 entries written at the other`,
  );
}, 600_000);

test("a token prefixed with another tenant's name is refused [T20]", async () => {
  const { server, pass } = await openHttp();
  const own = await pass("acme", "admin");
  const [, secret = ""] = own.split(".");
  for (const tenant of ["bolt", "acme ", "", "nobody", "__proto__", "constructor"]) {
    const place = Buffer.from(tenant).toString("base64url");
    const forged = `sallyport_${place}.${secret}`;
    expect(
      (await raw(`${server.url}/v1/me`, { headers: credentials(forged) })).status,
      tenant,
    ).toBe(401);
  }
});

test("truncated, extended, other-case and invented tokens are refused [T19]", async () => {
  const strangerRate = { perSecond: 1e6, burst: 1e6 };
  const { server, token } = await openHttp({ server: { limits: { strangerRate } } });
  const own = await token("acme", "auditor");
  const wrong = [
    own.slice(0, -1),
    `${own}a`,
    own.toUpperCase(),
    own.replace("sallyport_", "sallyport-"),
    own.slice(10),
    `${own} `,
    `${own},${own}`,
    `sallyport_${Buffer.from("acme").toString("base64")}.${"A".repeat(43)}`,
    "",
    "null",
    "undefined",
    ...Array.from(
      { length: 60 },
      (_, at) => own.slice(0, at + 10) + (own[at + 10] === "A" ? "B" : "A") + own.slice(at + 11),
    ),
  ].filter((text) => text !== own);
  for (const text of wrong) {
    for (const scheme of ["Bearer", "bearer", "Basic", "Token"]) {
      const headers = { authorization: `${scheme} ${text}` };
      const { status } = await raw(`${server.url}/v1/me`, { headers }).catch(() => ({
        status: 401,
      }));
      // A trailing space is no part of a header's value.
      if (text === `${own} ` && /^bearer$/i.test(scheme)) continue;
      expect([400, 401], text).toContain(status);
    }
  }
  expect((await raw(`${server.url}/v1/me?access_token=${own}`)).status).toBe(401);
});
