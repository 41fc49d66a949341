// Slack, against a server on loopback that stands for its API: messages, their change, and buttons that are signed.

import { createHmac } from "node:crypto";
import { expect, test } from "vitest";
import { createServer } from "../../src/http/index.ts";
import { type SlackOptions, slack } from "../../src/notify/index.ts";
import { raw } from "../http/http-world.ts";
import { CANARY, openNotifyWorld, startReceiver } from "./notify-world.ts";

const SIGNING = "signing-secret";

async function opened(options: Partial<SlackOptions> = {}) {
  const world = openNotifyWorld();
  const api = await startReceiver((_, nth) => ({
    body: JSON.stringify({ ok: true, ts: `170.${nth}`, channel: "C1" }),
  }));
  const team = slack({
    token: "xoxb-secret",
    channel: "C1",
    apiUrl: `${api.url}/api/`,
    signingSecret: SIGNING,
    people: { U1: "person:ada" },
    decide: ["reversible"],
    clock: world.clock,
    ...options,
  });
  const channels = { team };
  const notifier = world.notifier({ channels, routes: [{ to: ["team"] }] });
  const server = await createServer({
    store: world.store,
    gates: { shop: world.gate },
    notify: { tenant: "shop", channels },
  });
  /** What Slack sends when somebody presses a button of the newest message. */
  async function press(change: Press = {}) {
    const { verb = "approve", user = "U1", at = world.clock.now(), secret = SIGNING } = change;
    const value = change.value ?? valueIn(api.received.at(-1)?.body ?? "", verb);
    const payload = {
      type: "block_actions",
      user: { id: user, name: "ada" },
      actions: [{ value }],
    };
    const body = new URLSearchParams({ payload: JSON.stringify(payload) }).toString();
    const time = String(Math.floor(at / 1_000));
    const mac = createHmac("sha256", secret).update(`v0:${time}:${body}`).digest("hex");
    const sent = await raw(`${server.url}/v1/notify/${change.channel ?? "team"}/slack`, {
      method: "POST",
      headers: {
        "content-type": "application/x-www-form-urlencoded",
        "x-slack-request-timestamp": time,
        "x-slack-signature": `v0=${mac}`,
      },
      body: change.body ?? body,
    });
    return { status: sent.status, text: String(JSON.parse(sent.text).text ?? "") };
  }
  return { ...world, api, notifier, press, server };
}

interface Press {
  readonly verb?: string;
  readonly user?: string;
  readonly at?: number;
  readonly secret?: string;
  readonly value?: string;
  readonly body?: string;
  readonly channel?: string;
}

function valueIn(body: string, verb: string): string {
  const { blocks = [] } = JSON.parse(body || "{}") as { blocks?: { elements?: Button[] }[] };
  const buttons = blocks.flatMap(({ elements = [] }) => elements);
  return buttons.find(({ action_id }) => action_id === verb)?.value ?? "[]";
}

interface Button {
  readonly action_id: string;
  readonly value?: string;
  readonly url?: string;
}

test("a call of low risk has buttons; a press of a mapped person decides it, and the message is changed", async () => {
  const { ask, notifier, api, press, gate, server } = await opened();
  const id = await ask("crm.tag");
  expect(await notifier.round()).toMatchObject({ sent: 1 });
  const [posted] = api.received;
  expect(posted?.path).toBe("/api/chat.postMessage");
  expect(posted?.headers.authorization).toBe("Bearer xoxb-secret");
  expect(posted?.body).not.toContain(CANARY);
  expect(await press()).toEqual({ status: 200, text: "Your yes was recorded." });
  expect(await gate.interactions.get(id)).toMatchObject({
    outcome: "approved",
    answeredBy: "person:ada",
  });
  await notifier.round();
  const changed = api.received.at(-1);
  expect(changed?.path).toBe("/api/chat.update");
  expect(JSON.parse(changed?.body ?? "")).toMatchObject({ ts: "170.1", channel: "C1" });
  expect(changed?.body).toContain("approved by person:ada");
  expect(changed?.body).not.toContain("action_id");
  const value = JSON.stringify(["approve", id, (await gate.interactions.get(id)).hash]);
  expect((await press({ value })).text).toContain("decided before");
  await server.close();
});

test("a rejection in Slack is one, and names its person", async () => {
  const { ask, notifier, press, gate, server } = await opened();
  const id = await ask("crm.tag");
  await notifier.round();
  expect(await press({ verb: "reject" })).toEqual({ status: 200, text: "Rejected." });
  expect(await gate.interactions.get(id)).toMatchObject({ outcome: "rejected" });
  await server.close();
});

test("what is irreversible has only a link, and a forged press of it decides nothing", async () => {
  const { ask, notifier, api, press, gate, server } = await opened();
  const id = await ask("billing.refund");
  await notifier.round();
  const body = api.received[0]?.body ?? "";
  expect(valueIn(body, "approve")).toBe("[]");
  expect(body).toContain(`https://gate.example.com/inbox/${id}`);
  const { hash } = await gate.interactions.get(id);
  const { text } = await press({ value: JSON.stringify(["approve", id, hash]) });
  expect(text).toContain("console alone");
  expect(await gate.interactions.get(id)).toMatchObject({ status: "open" });
  await server.close();
});

test("unsigned, old, foreign and unmapped presses decide nothing [T19]", async () => {
  const { ask, notifier, press, gate, clock, server } = await opened();
  const id = await ask("crm.tag");
  await notifier.round();
  const head = await gate.audit.head();
  const refused: readonly [Press, number][] = [
    [{ secret: "another" }, 401],
    [{ at: clock.now() - 301_000 }, 401],
    [{ at: clock.now() + 301_000 }, 401],
    [{ body: "payload=%7B%7D" }, 401],
    [{ channel: "nobody" }, 404],
    [{ channel: "constructor" }, 404],
    [{ value: "not json" }, 422],
    [{ value: JSON.stringify(["cancel", id, "x"]) }, 422],
    [{ user: "U2" }, 200],
    [{ user: "constructor" }, 200],
    [{ value: JSON.stringify(["approve", id, "another-hash"]) }, 200],
  ];
  for (const [change, status] of refused) {
    expect((await press(change)).status, JSON.stringify(change)).toBe(status);
    expect(await gate.interactions.get(id)).toMatchObject({ status: "open" });
  }
  expect(await gate.audit.head()).toEqual(head);
  await server.close();
});

test("a channel that would decide more than low risk, or without a signing secret, is refused", () => {
  const base = { token: "x", channel: "C1" };
  expect(() => slack({ ...base, decide: ["irreversible"], signingSecret: "s" })).toThrow("console");
  expect(() => slack({ ...base, decide: ["read"] })).toThrow("signing secret");
  expect(() => slack({ ...base, apiUrl: "http://slack.example" })).toThrow("https");
});

test("an error that Slack repeats for ever is a dead letter; others are tried again", async () => {
  for (const [error, state] of [
    ["channel_not_found", "dead"],
    ["ratelimited", "waiting"],
  ] as const) {
    const world = openNotifyWorld();
    const api = await startReceiver(() => ({ body: JSON.stringify({ ok: false, error }) }));
    const team = slack({ token: "t", channel: "C1", apiUrl: `${api.url}/api/` });
    const notifier = world.notifier({ channels: { team }, routes: [{ to: ["team"] }] });
    await world.ask();
    await notifier.round();
    const [notice] = await world.notices.list({ state, limit: 5 });
    expect(notice?.problem).toBe(`Slack: ${error}`);
  }
});
