// The outbox: what the trail says is told once per channel, at least once per message, and never with its contents.

import { createRequire } from "node:module";
import path from "node:path";
import { expect, test } from "vitest";
import { install } from "../../scripts/install.mjs";
import { isSallyportError } from "../../src/model/errors.ts";
import type { NotifyChannel, NotifyMessage } from "../../src/notify/index.ts";
import { webhook } from "../../src/notify/index.ts";
import { CANARY, openNotifyWorld, startReceiver } from "./notify-world.ts";

const tools = path.resolve(import.meta.dirname, "../../tools/notify");
await install(tools, "a mail server and webhook checks", process.env);
const { Webhook } = createRequire(path.join(tools, "package.json"))("standardwebhooks");

const SECRET = `whsec_${Buffer.alloc(32, 7).toString("base64")}`;

/** A channel that keeps what it gets and fails as often as it is told. */
function memoryChannel(fails = 0): NotifyChannel & { readonly got: NotifyMessage[] } {
  const got: NotifyMessage[] = [];
  let left = fails;
  return {
    kind: "memory",
    got,
    async send(message) {
      got.push(message);
      if (left > 0) {
        left -= 1;
        throw new Error("not now");
      }
      return undefined;
    },
  };
}

test("a webhook is signed so that an independent library accepts it, and carries neither input nor dry run", async () => {
  const { url, received } = await startReceiver();
  const world = openNotifyWorld();
  const hook = webhook({ url: `${url}/hook`, secret: SECRET });
  const notifier = world.notifier({ channels: { hook }, routes: [{ to: ["hook"] }] });
  const id = await world.ask();
  expect(await notifier.round()).toEqual({ planned: 1, sent: 1, failed: 0, dropped: 0 });
  const [first] = received;
  const body = new Webhook(SECRET).verify(first?.body, first?.headers) as {
    items: readonly object[];
  };
  expect(body).toMatchObject({ type: "sallyport.asked", tenant: "shop" });
  expect(body.items).toEqual([
    expect.objectContaining({
      interactionId: id,
      tools: ["billing.refund"],
      agent: "agent:billing",
      url: `https://gate.example.com/inbox/${id}`,
    }),
  ]);
  expect(() => new Webhook(SECRET).verify(`${first?.body} `, first?.headers)).toThrow();
  await world.session.ask({ callId: "q", text: `May I use ${CANARY}?` });
  await world.approve(id);
  await notifier.round();
  await notifier.round();
  expect(received.length).toBe(3);
  expect(JSON.stringify(received)).not.toContain(CANARY);
  const decided = received.find(({ body: text }) => text.includes("sallyport.decided"));
  expect(decided?.body).toContain("person:ada");
});

test("a failed attempt is repeated with backoff under the same id, and the question is told once", async () => {
  const { url, received } = await startReceiver((_, nth) => ({ status: nth < 3 ? 503 : 200 }));
  const world = openNotifyWorld();
  const notifier = world.notifier({
    channels: { hook: webhook({ url, secret: SECRET }) },
    routes: [{ to: ["hook"] }],
  });
  await world.ask();
  expect(await notifier.round()).toMatchObject({ failed: 1 });
  expect(await notifier.round(), "not before its time").toMatchObject({ failed: 0, sent: 0 });
  world.clock.advance(5_000);
  expect(await notifier.round()).toMatchObject({ failed: 1 });
  world.clock.advance(19_999);
  expect(await notifier.round(), "the second wait is longer").toMatchObject({ sent: 0 });
  world.clock.advance(1);
  expect(await notifier.round()).toMatchObject({ sent: 1 });
  expect(new Set(received.map(({ headers }) => headers["webhook-id"])).size).toBe(1);
  world.clock.advance(3_600_000);
  expect(await notifier.round()).toMatchObject({ sent: 0 });
  expect(received).toHaveLength(3);
});

test("a message that fails for good is a dead letter with its reason, and is sent when it is tried again", async () => {
  const world = openNotifyWorld();
  const flaky = memoryChannel(2);
  const config = { channels: { flaky }, routes: [{ to: ["flaky"] }], attempts: 2 };
  const notifier = world.notifier(config);
  await world.ask();
  await notifier.round();
  world.clock.advance(5_000);
  await notifier.round();
  world.clock.advance(3_600_000);
  expect(await notifier.round()).toMatchObject({ sent: 0, failed: 0 });
  const [dead] = await world.notices.list({ state: "dead", limit: 10 });
  expect(dead).toMatchObject({ channel: "flaky", attempts: 2, problem: "not now" });
  const again = await world.notices.retry(dead?.id ?? "", { actor: "person:ops" });
  expect(again).toMatchObject({ state: "waiting", attempts: 0 });
  expect(await notifier.round()).toMatchObject({ sent: 1 });
  const twice = await world.notices.retry(dead?.id ?? "", { actor: "person:ops" }).catch((e) => e);
  expect(isSallyportError(twice, "illegal_transition")).toBe(true);
});

test("an answer that another attempt would not change is a dead letter immediately", async () => {
  const { url, received } = await startReceiver(() => ({ status: 410 }));
  const world = openNotifyWorld();
  const channels = { hook: webhook({ url, secret: SECRET }) };
  const notifier = world.notifier({ channels, routes: [{ to: ["hook"] }] });
  await world.ask();
  expect(await notifier.round()).toMatchObject({ failed: 1 });
  expect(received).toHaveLength(1);
  expect(await world.notices.list({ state: "dead", limit: 10 })).toHaveLength(1);
});

test("a process that dies during an attempt: another one sends it again under the same id after the lease", async () => {
  const world = openNotifyWorld();
  const { promise: never } = Promise.withResolvers<undefined>();
  const ids: string[] = [];
  const dying: NotifyChannel = {
    kind: "dying",
    send: (message) => {
      ids.push(message.id);
      return never;
    },
  };
  const routes = [{ to: ["c"] }];
  const first = world.notifier({ channels: { c: dying }, routes, timeoutMs: 60_000 });
  await world.ask();
  void first.round();
  await expect.poll(() => ids.length).toBe(1);
  const healthy = memoryChannel();
  const second = world.notifier({ channels: { c: healthy }, routes, timeoutMs: 60_000 });
  expect(await second.round(), "the lease holds").toMatchObject({ sent: 0 });
  world.clock.advance(180_001);
  expect(await second.round()).toMatchObject({ sent: 1 });
  expect(healthy.got.map(({ id }) => id)).toEqual(ids);
});

test("four notifiers over one store tell each of forty questions once", async () => {
  const world = openNotifyWorld({ quotas: { perAgent: { open: 100 } } } as object);
  const channel = memoryChannel();
  const config = { channels: { c: channel }, routes: [{ to: ["c"] }] };
  const notifiers = [1, 2, 3, 4].map(() => world.notifier(config));
  await Promise.all(notifiers.map((one) => one.round()));
  const asked: string[] = [];
  for (let index = 0; index < 40; index += 1) {
    asked.push(await world.ask());
    if (index % 5 === 0) await Promise.all(notifiers.map((one) => one.round()));
  }
  for (let round = 0; round < 4; round += 1) {
    await Promise.all(notifiers.map((one) => one.round()));
  }
  const told = channel.got.flatMap(({ items }) => items.map(({ interactionId }) => interactionId));
  expect(told.toSorted()).toEqual(asked.toSorted());
});

test("what is open when notifications are switched on is told, and history is not", async () => {
  const world = openNotifyWorld();
  const old = await world.ask();
  await world.approve(old);
  const open = await world.ask();
  const channel = memoryChannel();
  const notifier = world.notifier({ channels: { c: channel }, routes: [{ to: ["c"] }] });
  await notifier.round();
  await notifier.round();
  expect(channel.got.flatMap(({ items }) => items.map((one) => one.interactionId))).toEqual([open]);
});

test("a question that is decided before its message goes out is not told, neither is its decision", async () => {
  const world = openNotifyWorld();
  const channel = memoryChannel();
  const quiet = { from: "00:00", to: "23:00" };
  const notifier = world.notifier({ channels: { c: channel }, routes: [{ to: ["c"], quiet }] });
  const id = await world.ask();
  expect(await notifier.round()).toMatchObject({ planned: 1, sent: 0 });
  await world.approve(id);
  world.clock.advance(24 * 3_600_000);
  expect(await notifier.round()).toMatchObject({ sent: 0, dropped: 1 });
  expect(channel.got).toEqual([]);
});

test("a digest is one message with all questions of its time; reminders and escalations come later and only while it is open", async () => {
  const world = openNotifyWorld({ approvalMs: 4 * 3_600_000 });
  const team = memoryChannel();
  const lead = memoryChannel();
  const hour = 3_600_000;
  const notifier = world.notifier({
    channels: { team, lead },
    routes: [
      {
        to: ["team"],
        digestMs: hour,
        remindBeforeMs: hour,
        escalate: { afterMs: 2 * hour, to: ["lead"] },
      },
    ],
  });
  world.clock.advance(60_000);
  await notifier.round();
  const first = await world.ask();
  const second = await world.ask();
  await notifier.round();
  expect(team.got).toHaveLength(0);
  world.clock.advance(hour);
  await notifier.round();
  expect(team.got.map(({ kind, items }) => [kind, items.length])).toEqual([["asked", 2]]);
  await world.approve(first);
  world.clock.advance(hour);
  await notifier.round();
  expect(lead.got.map(({ kind, items }) => [kind, items[0]?.interactionId])).toEqual([
    ["escalated", second],
  ]);
  world.clock.advance(hour);
  await notifier.round();
  const reminded = team.got.filter(({ kind }) => kind === "reminded");
  expect(reminded.map(({ items }) => items[0]?.interactionId)).toEqual([second]);
});

test("every change of the outbox is in the trail, and the chain is intact", async () => {
  const world = openNotifyWorld();
  const channel = memoryChannel();
  const notifier = world.notifier({ channels: { c: channel }, routes: [{ to: ["c"] }] });
  await world.ask();
  await notifier.round();
  const entries = await world.gate.audit.entries({ after: 0, limit: 100 });
  const types = entries.map(({ type }) => type).filter((type) => type.startsWith("notice"));
  expect(types).toEqual(["notices.planned", "notice.planned", "notice.tried", "notice.sent"]);
  const before = await world.gate.audit.head();
  for (let round = 0; round < 5; round += 1) await notifier.round();
  expect(await world.gate.audit.head(), "it does not feed itself").toEqual(before);
});

test.each([
  [{ to: ["nobody"] }, "notify.routes[0].to", "There is no channel"],
  [{ to: [] }, "notify.routes[0].to", "at least one channel"],
  [{ to: ["c"], digestMs: 0 }, "notify.routes[0].digestMs", "above 0"],
  [{ to: ["c"], quiet: { from: "25:00", to: "07:00" } }, "notify.routes[0].quiet.from", "22:00"],
  [
    { to: ["c"], quiet: { from: "22:00", to: "07:00", timeZone: "Moon/Base" } },
    "notify.routes[0].quiet.timeZone",
    "no time zone",
  ],
])("a route that could not work is refused by its field: %o", (route, field, hint) => {
  const world = openNotifyWorld();
  const make = () => world.notifier({ channels: { c: memoryChannel() }, routes: [route] });
  expect(make).toThrow(field);
  expect(make).toThrow(hint);
});

test("webhooks refuse plain http beyond loopback, and short secrets", () => {
  expect(() => webhook({ url: "http://example.com/x", secret: SECRET })).toThrow("https");
  expect(() => webhook({ url: "https://example.com/x", secret: "whsec_c2hvcnQ=" })).toThrow("24");
});
