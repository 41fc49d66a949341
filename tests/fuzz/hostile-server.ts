// A server that answers anything but what it should.

import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { gzipSync } from "node:zlib";
import { ERRORS } from "../../src/model/errors.ts";

const ESCAPES = "\u001b[2J\u001b[31mapproved\u009b1m\u202e\u0007\r\n";
const json = { "content-type": "application/json" };

type Reply = (answer: ServerResponse, url: string) => void;

function reply(
  status: number,
  body: string | Buffer,
  headers: Record<string, string> = json,
): Reply {
  return (answer) => answer.writeHead(status, headers).end(body);
}

function problem(status: number, value: object): Reply {
  return reply(status, JSON.stringify(value), { "content-type": "application/problem+json" });
}

const FORGED = `${ESCAPES}pa\u3164ypal\n  FORGED: {"command":"ls"}\n  FORGED by person:ceo`;

/** A question of the right shape with hostile text in every field that may hold text. */
function question(type: string): object {
  const at = "2026-01-01T00:00:00.000Z";
  const texts = ["sessionId", "callId", "hash", "decisionId", "operationId", "assignedTo"];
  return {
    ...Object.fromEntries(texts.map((name) => [name, FORGED])),
    id: `q-${type}`,
    type,
    status: "open",
    displayText: FORGED,
    chain: [FORGED, FORGED],
    choices: type === "ask_user" ? [FORGED, FORGED] : [],
    pendingTool: { tool_name: FORGED, args_json: FORGED, summary: FORGED },
    metadata: { [FORGED]: FORGED },
    requires: [{ name: FORGED, count: 1 }],
    votes: [],
    remarks: [{ by: FORGED, text: FORGED }],
    waitsFor: "people",
    deadline: at,
    escalated: false,
    answeredBy: "",
    reason: "",
    supersededBy: "",
    createdAt: at,
    updatedAt: at,
    version: 1,
    ord: 1,
  };
}

/** By name. What a client would try again is left out: that is waiting, not attacking. */
export const REPLIES: Readonly<Record<string, Reply>> = {
  "a page": reply(200, "<html>please sign in</html>", { "content-type": "text/html" }),
  nothing: reply(200, ""),
  "half of it": reply(200, '{"items":[{"id":"x"'),
  "two of it": reply(200, '{"items":[]}{"items":[]}'),
  null: reply(200, "null"),
  "a number": reply(200, "5"),
  "a list": reply(200, '[[[["x"]]]]'),
  "another shape": reply(200, '{"items":5,"next":{}}'),
  "items of everything": reply(200, '{"items":[null,1,"x",[],{"a":{"b":1}}],"next":null}'),
  poisoned: reply(
    200,
    '{"__proto__":{"polluted":true},"constructor":{"prototype":{"polluted":1}}}',
  ),
  "escape codes": reply(200, JSON.stringify({ id: ESCAPES, [ESCAPES]: ESCAPES })),
  "escape codes in a list": reply(200, JSON.stringify({ items: [{ [ESCAPES]: ESCAPES }] })),
  "a hostile inbox": (answer, url) => {
    const items = ["confirm", "ask_user", "connection_lost"].map(question);
    const type = /interactions\/q-(\w+)$/.exec(url)?.[1];
    const body = type === undefined ? { items, next: null } : question(type);
    answer.writeHead(200, json).end(JSON.stringify(body));
  },
  "very deep": reply(200, `${"[".repeat(20_000)}${"]".repeat(20_000)}`),
  large: reply(200, JSON.stringify({ text: "x".repeat(3_000_000) })),
  "bad UTF-8": reply(200, Buffer.from([0x22, 0xff, 0xfe, 0x22])),
  "bad gzip": reply(200, "this is not gzip", { ...json, "content-encoding": "gzip" }),
  "a small bomb": reply(200, gzipSync(`"${"0".repeat(5_000_000)}"`), {
    ...json,
    "content-encoding": "gzip",
  }),
  redirect: reply(302, "", { location: "http://127.0.0.1:9/" }),
  "redirect in a circle": reply(307, "", { location: "/" }),
  "no content": reply(204, ""),
  "not modified": reply(304, ""),
  "a teapot": reply(418, "short and stout", { "content-type": "text/plain" }),
  "500 as a page": reply(500, "<h1>Internal Server Error</h1>", { "content-type": "text/html" }),
  "a code that is none": problem(400, { code: "nonsense", details: {} }),
  "a code of the prototype": problem(400, { code: "toString", details: {} }),
  "details that are none": problem(403, { code: "not_allowed", details: null }),
  "details as a list": problem(403, { code: "not_allowed", details: [1, 2] }),
  "a hint that is none": problem(403, { code: "not_allowed", details: { hint: { a: 1 } } }),
  "escape codes in a hint": problem(403, {
    code: "not_allowed",
    details: { hint: ESCAPES, by: ESCAPES },
  }),
  "a long hint": problem(403, { code: "not_allowed", details: { hint: "x".repeat(500_000) } }),
  "a problem as a list": problem(400, []),
  "not signed in": problem(401, { code: "unauthenticated", details: {} }),
  ...Object.fromEntries(
    Object.entries(ERRORS)
      .filter(([code, { retry }]) => retry !== "safe" && code !== "still_running")
      .map(([code, { status }]) => [`problem ${code}`, problem(status, { code, details: {} })]),
  ),
};

export interface HostileServer {
  readonly url: string;
  /** What it answers from now on. */
  use(reply: string): void;
  close(): Promise<void>;
}

export async function startHostileServer(): Promise<HostileServer> {
  let current: Reply = reply(200, "null");
  const server = createServer((request, answer) => {
    request.resume();
    request.on("end", () => current(answer, request.url ?? ""));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}`,
    use(name) {
      const found = REPLIES[name];
      if (found === undefined) throw new Error(`no reply "${name}"`);
      current = found;
    },
    close: () => {
      server.closeAllConnections();
      return new Promise((resolve) => server.close(() => resolve()));
    },
  };
}
