// Tokens, sessions and keys of requests, alike on every engine.

import { expect, test } from "vitest";
import { createRedactor } from "../../src/audit/redact.ts";
import { createStore } from "../../src/store/store.ts";
import type { NewToken } from "../../src/store/tokens.ts";
import { forEachStore } from "../support/for-each-store.ts";

const BY = { actor: "test" };
const token = (hash: string, over: Partial<NewToken> = {}): NewToken => ({
  kind: "token",
  hash,
  subject: "agent:one",
  roles: ["agent"],
  owner: "person:ada",
  note: "for the \u0000 test",
  lifeMs: 60_000,
  ...over,
});

forEachStore("HTTP rows", (open) => {
  async function opened() {
    const { engine, clock } = await open();
    const store = createStore(engine, { redact: createRedactor({}) });
    return { store, clock, acme: store.tenant("acme"), bolt: store.tenant("bolt") };
  }

  test("tokens: found by hash, within their tenant, until revoked", async () => {
    const { acme, bolt } = await opened();
    const made = await acme.tokens.make(token("h1"), BY);
    expect(made).toMatchObject({
      subject: "agent:one",
      roles: ["agent"],
      owner: "person:ada",
      isLive: true,
    });
    expect(await acme.tokens.find("h1")).toEqual(made);
    expect(await bolt.tokens.find("h1")).toBeUndefined();
    expect(await acme.tokens.end(made.id, "stolen", BY)).toBe(true);
    expect(await acme.tokens.end(made.id, "again", BY)).toBe(false);
    expect(await acme.tokens.find("h1")).toBeUndefined();
    await expect(acme.tokens.end("nobody", "", BY)).rejects.toThrow(/not_found/);
    await expect(bolt.tokens.end(made.id, "", BY)).rejects.toThrow(/not_found/);
    const types = (await acme.audit.read({ after: 0, limit: 10 })).map(({ type }) => type);
    expect(types).toEqual(["token.made", "token.ended"]);
  });

  test("tokens: expire by the store's clock", async () => {
    const { acme, clock } = await opened();
    await acme.tokens.make(token("h1", { lifeMs: 1_000 }), BY);
    clock.advance(1_000);
    expect(await acme.tokens.find("h1")).toBeDefined();
    clock.advance(1);
    expect(await acme.tokens.find("h1")).toBeUndefined();
  });

  test("tokens: conflicting roles of one identity are refused", async () => {
    const { acme } = await opened();
    for (const roles of [
      ["agent", "reviewer"],
      ["admin", "auditor"],
      [],
      ["admin", "admin"],
    ] as const) {
      await expect(acme.tokens.make(token("h", { roles }), BY)).rejects.toThrow(/invalid_input/);
    }
    await expect(acme.tokens.make(token("h", { lifeMs: 0 }), BY)).rejects.toThrow(/invalid_input/);
    await expect(acme.tokens.make(token("h", { lifeMs: Number.NaN }), BY)).rejects.toThrow(
      /invalid_input/,
    );
  });

  test("sign-in links: of many concurrent exchanges one gets a session", async () => {
    const { acme, clock } = await opened();
    const person = { roles: ["reviewer"], owner: "" } as const;
    const link = await acme.tokens.make(token("link", { kind: "link", ...person }), BY);
    const next = (n: number) => token(`session-${n}`, { kind: "session", ...person });
    const made = await Promise.all(
      Array.from({ length: 20 }, (_, n) => acme.tokens.exchange(link, next(n))),
    );
    expect(made.filter((one) => one !== undefined)).toHaveLength(1);
    expect(await acme.tokens.list({ kind: "session", limit: 10 })).toHaveLength(1);
    const late = await acme.tokens.make(token("late", { kind: "link", lifeMs: 5 }), BY);
    clock.advance(6);
    expect(await acme.tokens.exchange(late, next(99))).toBeUndefined();
    expect(await acme.tokens.find("session-99")).toBeUndefined();
  });

  test("invitations: sign no one in until another admin confirms, once [H3]", async () => {
    const { acme } = await opened();
    const person = {
      kind: "link",
      subject: "person:cyn",
      roles: ["reviewer"],
      owner: "",
    } as const;
    const { id } = await acme.tokens.invite(token("half", person), BY);
    expect(await acme.tokens.invitations({ limit: 10 })).toMatchObject([{ id, isLive: true }]);
    const make = (half: string) => ({ hash: `${half} and link`, lifeMs: 60_000 });
    await expect(acme.tokens.confirm(id, make, BY)).rejects.toThrow(/not_allowed/);
    await expect(acme.tokens.confirm("x", make, BY)).rejects.toThrow(/not_found/);
    const other = { actor: "person:other" };
    const link = await acme.tokens.confirm(id, make, other);
    expect(link).toMatchObject({ ...person, madeBy: "person:other" });
    expect(await acme.tokens.find("half and link")).toMatchObject({ id: link.id });
    expect(await acme.tokens.find("half")).toBeUndefined();
    const second = (half: string) => ({ ...make(half), hash: "another link" });
    await expect(acme.tokens.confirm(id, second, other)).rejects.toThrow(/illegal_transition/);
    expect(await acme.tokens.invitations({ limit: 10 })).toMatchObject([{ id, isLive: false }]);
    expect(await acme.tokens.invitation(link.id)).toBeUndefined();
  });

  test("sessions: belong to the caller that opened them first", async () => {
    const { acme, bolt } = await opened();
    const mine = { id: "s-1", agent: "agent:one", owner: "", workingDirectory: "/w\u0000" };
    const first = await acme.sessions.open(mine);
    expect(await acme.sessions.open({ ...mine, workingDirectory: "/other" })).toEqual(first);
    await expect(acme.sessions.open({ ...mine, agent: "agent:two" })).rejects.toThrow(
      /already_exists/,
    );
    expect(await acme.sessions.peek("s-1")).toEqual(first);
    expect(await bolt.sessions.peek("s-1")).toBeUndefined();
    await acme.sessions.open({ ...mine, id: "s-2", agent: "agent:two" });
    const ids = async (query: object) =>
      (await acme.sessions.list({ limit: 10, ...query })).map(({ id }) => id);
    expect(await ids({})).toEqual(["s-1", "s-2"]);
    expect(await ids({ agent: "agent:two" })).toEqual(["s-2"]);
    expect(await ids({ after: first.ord })).toEqual(["s-2"]);
  });

  test("idempotency keys: begun once, the answer is returned, other content is detected", async () => {
    const { acme, bolt } = await opened();
    const request = { id: "k", route: "switch.stop", contentHash: "c", actor: "person:ada" };
    const terms = { leaseMs: 1_000, keepMs: 10_000 };
    const begun = await Promise.all(
      Array.from({ length: 20 }, () => acme.httpKeys.begin(request, terms)),
    );
    expect(begun.filter(({ found }) => found === "nothing")).toHaveLength(1);
    expect(begun.filter(({ found }) => found === "running")).toHaveLength(19);
    expect(await bolt.httpKeys.begin(request, terms)).toMatchObject({ found: "nothing" });
    expect(await acme.httpKeys.begin({ ...request, contentHash: "d" }, terms)).toEqual({
      found: "other_content",
    });
    expect(await acme.httpKeys.begin({ ...request, route: "x" }, terms)).toEqual({
      found: "other_content",
    });
    const answer = { status: 200, body: '{"nul":"\\u0000"}' };
    expect(await acme.httpKeys.answer("k", 2, answer, "a")).toBe(false);
    expect(await acme.httpKeys.answer("k", 1, answer, "a")).toBe(true);
    expect(await acme.httpKeys.answer("k", 1, { status: 500, body: "" }, "a")).toBe(false);
    expect(await acme.httpKeys.begin(request, terms)).toEqual({ found: "answer", answer });
  });

  test("idempotency keys: an interrupted request is taken over once, and the first sender's result is refused", async () => {
    const { acme, clock } = await opened();
    const request = { id: "k", route: "r", contentHash: "c", actor: "a" };
    const terms = { leaseMs: 1_000, keepMs: 10_000 };
    await acme.httpKeys.begin(request, terms);
    clock.advance(1_000);
    const again = await Promise.all([1, 2, 3].map(() => acme.httpKeys.begin(request, terms)));
    expect(again.filter(({ found }) => found === "nothing")).toEqual([
      { found: "nothing", fence: 2, again: true },
    ]);
    expect(await acme.httpKeys.answer("k", 1, { status: 200, body: "late" }, "a")).toBe(false);
    await acme.httpKeys.forget("k", 1, "a");
    expect(await acme.httpKeys.begin(request, terms)).toEqual({ found: "running" });
    await acme.httpKeys.forget("k", 2, "a");
    expect(await acme.httpKeys.begin(request, terms)).toMatchObject({
      found: "nothing",
      again: false,
    });
  });

  test("idempotency keys: old ones are deleted, recent ones stay", async () => {
    const { acme, clock } = await opened();
    const begin = (id: string, keepMs: number) =>
      acme.httpKeys.begin({ id, route: "r", contentHash: "c", actor: "a" }, { leaseMs: 1, keepMs });
    await begin("old", 1_000);
    await begin("young", 9_000);
    expect(await acme.httpKeys.sweep(10, "a")).toBe(0);
    clock.advance(1_000);
    expect(await acme.httpKeys.sweep(10, "a")).toBe(1);
    expect(await begin("young", 9_000)).toMatchObject({ found: "nothing", again: true });
    expect(await begin("old", 9_000)).toMatchObject({ found: "nothing", again: false });
  });
});
