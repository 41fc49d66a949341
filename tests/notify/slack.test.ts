// Slack, against a server on loopback that stands for its API: messages, their change, and buttons that are signed.

import { createHmac } from "node:crypto";
import { expect, onTestFinished, test } from "vitest";
import { createClient, signIn } from "../../src/client/index.ts";
import type { GateOptions } from "../../src/gate/options.ts";
import { createServer } from "../../src/http/index.ts";
import type { Role } from "../../src/model/identity.ts";
import { type SlackOptions, slack } from "../../src/notify/index.ts";
import { raw } from "../http/http-world.ts";
import { CANARY, openNotifyWorld, startReceiver } from "./notify-world.ts";

const SIGNING = "signing-secret";

async function opened(
  options: Partial<SlackOptions> = {},
  more: {
    readonly gate?: Partial<GateOptions>;
    readonly route?: object;
    readonly signedIn?: boolean;
  } = {},
) {
  const world = openNotifyWorld(more.gate);
  const api = await startReceiver((_, nth) => ({
    body: JSON.stringify({ ok: true, ts: `170.${nth}`, channel: "C1" }),
  }));
  const team = slack({
    token: "xoxb-secret",
    channel: "C1",
    apiUrl: `${api.url}/api/`,
    signingSecret: SIGNING,
    people: { U1: "person:ada" },
    lowRisk: ["crm.tag"],
    clock: world.clock,
    ...options,
  });
  const channels = { team };
  const notifier = world.notifier({ channels, routes: [{ to: ["team"], ...more.route }] });
  const server = await createServer({
    store: world.store,
    gates: { shop: world.gate },
    notify: { tenant: "shop", channels },
  });
  onTestFinished(() => server.close());
  const signInAs = async (subject: string, roles: readonly Role[] = ["reviewer"]) => {
    const { url, session } = await signIn({ link: await server.signInLink({ subject, roles }) });
    return createClient({ url, session });
  };
  if (more.signedIn !== false) await signInAs("person:ada");
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
  return { ...world, api, notifier, press, signInAs };
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
  const { ask, notifier, api, press, gate } = await opened();
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
});

test("a rejection in Slack is one, and names its person", async () => {
  const { ask, notifier, press, gate } = await opened();
  const id = await ask("crm.tag");
  await notifier.round();
  expect(await press({ verb: "reject" })).toEqual({ status: 200, text: "Rejected." });
  expect(await gate.interactions.get(id)).toMatchObject({ outcome: "rejected" });
});

test("what is irreversible has only a link, and a forged press of it decides nothing", async () => {
  const { ask, notifier, api, press, gate } = await opened();
  const id = await ask("billing.refund");
  await notifier.round();
  const body = api.received[0]?.body ?? "";
  expect(valueIn(body, "approve")).toBe("[]");
  expect(body).toContain(`https://gate.example.com/inbox/${id}`);
  const { hash } = await gate.interactions.get(id);
  const { text } = await press({ value: JSON.stringify(["approve", id, hash]) });
  expect(text).toContain("console alone");
  expect(await gate.interactions.get(id)).toMatchObject({ status: "open" });
});

test("a press decides only for a person who is signed in as a reviewer at that moment, and only what two parties call low risk [H3]", async () => {
  const { ask, notifier, press, gate, signInAs } = await opened({}, { signedIn: false });
  const id = await ask("crm.tag");
  await notifier.round();
  const isOpen = async () => (await gate.interactions.get(id)).status === "open";
  for (const roles of [[], ["operator"], ["auditor"]] as const) {
    if (roles.length > 0) await signInAs("person:ada", roles);
    expect((await press()).text, roles.join()).toContain("Sign in to the console");
    expect((await press({ verb: "reject" })).text).toContain("Sign in to the console");
    expect(await isOpen()).toBe(true);
  }
  // Another person's session, and a link that was not used, are nobody's sign-in.
  await signInAs("person:ben");
  expect((await press()).text).toContain("Sign in to the console");
  const ada = await signInAs("Person:Ada");
  await ada.me.signOutEverywhere();
  expect((await press()).text).toContain("Sign in to the console");
  await signInAs("Person:Ada");
  expect((await press()).text).toBe("Your yes was recorded.");
  expect(await gate.interactions.get(id)).toMatchObject({ answeredBy: "Person:Ada" });
});

test("nothing is decided in Slack unless its tools are named, it can be undone, and one person's yes is enough [H3]", async () => {
  const forged = async (world: Awaited<ReturnType<typeof opened>>, tool: string) => {
    const id = await world.ask(tool);
    await world.notifier.round();
    expect(valueIn(world.api.received.at(-1)?.body ?? "", "approve"), tool).toBe("[]");
    const { hash } = await world.gate.interactions.get(id);
    for (const verb of ["approve", "reject"]) {
      const { text } = await world.press({ value: JSON.stringify([verb, id, hash]) });
      expect(text, tool).toContain("console alone");
    }
    expect(await world.gate.interactions.get(id)).toMatchObject({ status: "open", votes: [] });
  };
  await forged(await opened({ lowRisk: [] }), "crm.tag");
  await forged(await opened({ lowRisk: ["crm"] }), "crm.tag");
  await forged(await opened({ lowRisk: ["crm.tag", "billing.refund"] }), "billing.refund");
});

test("what two people have to approve, or the person asked for or changed, is not decided by a press [H3]", async () => {
  const review = [{ requires: [{ name: "review", count: 2 }] }];
  const two = await opened({}, { gate: { review } });
  const id = await two.ask("crm.tag");
  await two.notifier.round();
  expect((await two.press()).text).toContain("console alone");
  expect(await two.gate.interactions.get(id)).toMatchObject({ votes: [] });

  const own = await opened();
  const session = own.gate.sessions.open({ agent: "agent:x", owner: "person:ada" });
  const asked = await session.call({ callId: "c", tool: "crm.tag", input: { note: "n" } });
  await own.notifier.round();
  expect((await own.press()).text).toContain("Another person has to decide");
  expect(asked.answer).toBe("pending");
});

test("a digest is redrawn when one of its questions is decided: the others keep their buttons, and its id outlives retries", async () => {
  let down = true;
  const hour = 3_600_000;
  const world = openNotifyWorld({ approvalMs: 20 * hour });
  const api = await startReceiver((_, nth) =>
    down
      ? { status: 503 }
      : { body: JSON.stringify({ ok: true, ts: `170.${nth}`, channel: "C1" }) },
  );
  const terms = { token: "t", channel: "C1", apiUrl: `${api.url}/api/`, signingSecret: SIGNING };
  const team = slack({ ...terms, lowRisk: ["crm.tag"] });
  const routes = [{ to: ["team"], digestMs: hour }];
  const notifier = world.notifier({ channels: { team }, routes });
  await notifier.round();
  const ids = [await world.ask("crm.tag"), await world.ask("crm.tag"), await world.ask("crm.tag")];
  await notifier.round();
  world.clock.advance(hour);
  expect(await notifier.round()).toMatchObject({ failed: 3 });
  // One is decided before the next attempt, and another question comes for the same bundle.
  await world.approve(ids[0] ?? "");
  await world.ask("crm.tag");
  down = false;
  world.clock.advance(hour);
  await notifier.round();
  const posts = api.received.filter(({ path }) => path.endsWith("postMessage"));
  const bodies = posts.map(({ body }) => JSON.parse(body) as { client_msg_id: string });
  const first = bodies[0]?.client_msg_id ?? "";
  const again = posts.filter(({ body }) => body.includes(first));
  expect(again.length, "later attempts have the id of the first").toBe(3);
  expect(again.at(-1)?.body).not.toContain(`inbox/${ids[0]}"`);
  expect(again.at(-1)?.body).toContain(`inbox/${ids[1]}"`);
  await world.approve(ids[1] ?? "");
  await notifier.round();
  const changed = api.received.filter(({ path }) => path.endsWith("chat.update")).at(-1);
  expect(changed?.body).toContain("approved by person:ada");
  expect(changed?.body).not.toContain(`inbox/${ids[1]}"`);
  expect(changed?.body).toContain(`inbox/${ids[2]}"`);
  expect(JSON.parse(valueIn(changed?.body ?? "", "approve"))[1]).toBe(ids[2]);
});

test("unsigned, old, foreign and unmapped presses decide nothing [T19]", async () => {
  const { ask, notifier, press, gate, clock } = await opened();
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
});

test("a channel that would decide without a signing secret is refused", () => {
  const base = { token: "x", channel: "C1" };
  expect(() => slack({ ...base, lowRisk: ["crm.tag"] })).toThrow("signing secret");
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
