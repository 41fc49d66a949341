// Requests that are wrong in one or two ways, made from right ones for every route of the table.

import { PATHS, pathOf, type RouteName } from "../../src/http/paths.ts";
import { ROLES } from "../../src/model/identity.ts";
import { sampleInput } from "../http/matrix-samples.ts";
import type { Dice } from "../support/dice.ts";
import { brokenJson, HOSTILE_KEYS, HOSTILE_VALUES, twistedJson } from "./hostile-json.ts";
import type { Loot } from "./http-child.ts";

export interface HostileRequest {
  readonly route: RouteName;
  readonly kind: Kind;
  method: string;
  path: string;
  readonly headers: Record<string, string | string[]>;
  body: Buffer | undefined;
}

const METHODS = ["PUT", "DELETE", "PATCH", "HEAD", "OPTIONS", "TRACE", "GET", "POST", "PROPFIND"];

const IDS: readonly ((right: string) => string)[] = [
  (id) => `${id}%00`,
  (id) => `${id}/`,
  (id) => `../${id}`,
  (id) => `%2e%2e%2f${id}`,
  (id) => `${id};x=1`,
  (id) => id.toUpperCase(),
  (id) => `%20${id}`,
  () => "%ff%fe",
  () => "%",
  () => "%u0041",
  () => "%E2%80%AE%E2%80%8B",
  () => "__proto__",
  () => "constructor",
  () => "",
  () => "*",
  () => "'%20OR%201=1--",
  () => "a".repeat(3_000),
  () => "%F0%9F%98%80".repeat(200),
];

const QUERIES = [
  "cursor=AAAA",
  "cursor=%7B%22ord%22%3A-1%7D",
  "cursor=__proto__",
  "cursor=MTAwMDAwMDAwMDAwMDAwMDAwMDAw",
  "limit=-1",
  "limit=0",
  "limit=1e9",
  "limit=999999999999999999",
  "limit=NaN",
  "limit=1&limit=2",
  "after=-1",
  "after=9007199254740993",
  "since=2026-99-99",
  "__proto__[polluted]=1",
  "__proto__=1",
  "constructor=1",
  "toString=1&valueOf=2",
  "constructor.prototype.polluted=1",
  "status=open&status=open",
  "status[]=open",
  "state=approved'--",
  "id=x",
  "%00=%00",
  "%ff",
  "&&&==&",
  "a=".repeat(1_000),
];

const HEADERS: readonly [string, readonly (string | string[])[]][] = [
  [
    "content-type",
    [
      "",
      "text/plain",
      "application/json; charset=utf-16",
      "application/json, text/html",
      "application/x-www-form-urlencoded",
      "multipart/form-data; boundary=a",
      "application/json;".repeat(200),
      "APPLICATION/JSON",
    ],
  ],
  ["content-encoding", ["gzip", "br", "identity, gzip", "x".repeat(500)]],
  [
    "authorization",
    [
      "",
      "Bearer",
      "Bearer x",
      `Bearer ${"a".repeat(6_000)}`,
      "Basic YWRtaW46YWRtaW4=",
      "bearer null",
      "Bearer sp_acme_%00",
      "Bearer __proto__",
    ],
  ],
  [
    "host",
    ["evil.example", "127.0.0.1", "localhost:1", "[::1]", "127.0.0.1.", "", "a".repeat(300)],
  ],
  ["origin", ["null", "http://evil.example", "http://127.0.0.1", "file://", "%"]],
  ["cookie", ["sallyport=1", "=;=;=".repeat(500), "__proto__=1; a=b", "a".repeat(4_000)]],
  ["idempotency-key", ["", " ", "a b", "é", "k".repeat(256), "__proto__", ["a", "b"]]],
  ["last-event-id", ["-1", "1e9", "x", "9".repeat(40), "__proto__"]],
  ["x-http-method-override", ["DELETE"]],
  ["x-forwarded-host", ["evil.example"]],
  ["expect", ["100-continue"]],
  ["accept", ["text/html", "*/*".repeat(300)]],
  ["range", ["bytes=0-1,5-6,-1"]],
  ["if-none-match", ["*"]],
  ["sec-fetch-site", ["cross-site"]],
  ["x-a", ["y".repeat(15_000)]],
];

type Change = (request: HostileRequest, around: Around) => void;

interface Around {
  readonly dice: Dice;
  readonly loot: Loot;
  readonly input: Readonly<Record<string, unknown>>;
}

/** What is done to a right request. Each is counted, so that a run in which one never happened is void. */
const KINDS = {
  twisted(request, { dice, input }) {
    request.body = Buffer.from(twistedJson(input, dice));
  },
  broken(request, { dice, input }) {
    request.body = brokenJson(twistedJson(input, dice), dice);
  },
  poisoned(request, { dice, input }) {
    const key = dice.pick(HOSTILE_KEYS.slice(0, 8));
    const text = JSON.stringify(input).replaceAll("{", () =>
      dice.below(2) === 0 ? "{" : `{${JSON.stringify(key)}:${HOSTILE_VALUES[dice.below(3)]},`,
    );
    request.body = Buffer.from(text.replaceAll(",}", "}"));
  },
  id(request, { dice, loot }) {
    const { records, foreign } = loot;
    const ids = [...Object.values(records), ...Object.values(foreign)].map(encodeURIComponent);
    const right = dice.pick(ids);
    const name = pathOf(request.route).path.replace(/:\w+/, () => dice.pick(IDS)(right));
    request.path = name.replaceAll(/:\w+/g, () => right);
  },
  foreign(request, { dice, loot }) {
    const own = Object.values(loot.records);
    const theirs = Object.values(loot.foreign);
    const swap = (text: string) =>
      own.reduce((now, id, index) => now.replaceAll(id, theirs[index] ?? id), text);
    request.path = swap(request.path);
    request.body = request.body && Buffer.from(swap(request.body.toString("utf8")));
    if (dice.below(2) === 0) request.headers["authorization"] = `Bearer ${loot.foreignToken}`;
  },
  query(request, { dice }) {
    request.path += `${request.path.includes("?") ? "&" : "?"}${dice.pick(QUERIES)}`;
  },
  header(request, { dice }) {
    const [name, values] = dice.pick(HEADERS);
    request.headers[name] = dice.pick(values);
  },
  method(request, { dice }) {
    request.method = dice.pick(METHODS);
  },
  role(request, { dice, loot }) {
    request.headers["authorization"] = `Bearer ${loot.tokens[dice.pick(ROLES)]}`;
  },
  huge(request, { dice }) {
    const size = dice.pick([1_048_577, 2_000_000, 10 * 1_048_576]);
    request.body = Buffer.alloc(size, dice.pick(["x", "[", '{"a":', "\\u0000", " "]));
    request.method = "POST";
  },
} as const satisfies Record<string, Change>;

export type Kind = keyof typeof KINDS;
/** How often each is taken: the big ones cost as much as a hundred others. */
const WEIGHTS: Readonly<Record<Kind, number>> = {
  twisted: 30,
  broken: 14,
  poisoned: 16,
  id: 10,
  foreign: 6,
  query: 8,
  header: 10,
  method: 4,
  role: 6,
  huge: 0.5,
};
const SECOND: readonly Kind[] = ["header", "query", "id", "role", "method"];
export const KIND_NAMES = Object.keys(KINDS) as Kind[];
const LOTS = KIND_NAMES.flatMap((kind) => Array<Kind>(WEIGHTS[kind] * 2).fill(kind));
const NAMES = Object.keys(PATHS) as RouteName[];
const BODY = NAMES.filter((name) => PATHS[name].startsWith("POST "));
/** Where a change of this kind is looked at at all. */
const ROUTES_FOR: Partial<Readonly<Record<Kind, readonly RouteName[]>>> = {
  twisted: BODY,
  broken: BODY,
  poisoned: BODY,
  query: NAMES.filter((name) => PATHS[name].startsWith("GET ")),
  id: NAMES.filter((name) => PATHS[name].includes(":")),
  foreign: NAMES.filter((name) => PATHS[name].includes(":")),
};

export function hostileRequest(dice: Dice, loot: Loot): HostileRequest {
  const kind = dice.pick(LOTS);
  const route = dice.pick(ROUTES_FOR[kind] ?? NAMES);
  const input = sampleInput(route, dice.below(20) === 0 ? loot.foreign : loot.records);
  const request = { ...rightRequest(route, input, loot, dice), kind };
  const around = { dice, loot, input: bodyOf(route, input) };
  KINDS[kind](request, around);
  // One in five is wrong in a second way.
  if (dice.below(5) === 0) KINDS[dice.pick(SECOND)](request, around);
  if (request.body === undefined) return request;
  // In pieces, without saying how many will come, or with the size said beforehand.
  if (dice.below(4) === 0) request.headers["transfer-encoding"] = "chunked";
  else request.headers["content-length"] = String(request.body.length);
  return request;
}

function rightRequest(
  route: RouteName,
  input: Readonly<Record<string, unknown>>,
  { tokens, people }: Loot,
  dice: Dice,
): Omit<HostileRequest, "kind"> {
  const { method, path, params } = pathOf(route);
  const filled = params.reduce(
    (now, param) => now.replace(`:${param}`, encodeURIComponent(String(input[param]))),
    path,
  );
  const role = roleFor(route, dice);
  // People's sessions mostly, because only they get past the first check of what people do; their tokens now and then.
  const headers: Record<string, string | string[]> =
    role in people && dice.below(8) > 0
      ? { ...people[role as keyof typeof people] }
      : { authorization: `Bearer ${tokens[role]}` };
  const rest = bodyOf(route, input);
  if (method === "GET") {
    const query = new URLSearchParams(rest as Record<string, string>).toString();
    return {
      route,
      method,
      path: query === "" ? filled : `${filled}?${query}`,
      headers,
      body: undefined,
    };
  }
  headers["content-type"] = "application/json";
  return { route, method, path: filled, headers, body: Buffer.from(JSON.stringify(rest)) };
}

/** Usually a caller with the right role, so that more than the authorization is attacked. */
function roleFor(route: RouteName, { below, pick }: Dice): (typeof ROLES)[number] {
  if (below(10) === 0) return pick(ROLES);
  const [noun = ""] = route.split(".");
  const fitting = {
    sessions: "agent",
    interactions: "reviewer",
    audit: "auditor",
    tokens: "admin",
    people: "admin",
  };
  return (fitting[noun as keyof typeof fitting] ?? "operator") as (typeof ROLES)[number];
}

function bodyOf(route: RouteName, input: Readonly<Record<string, unknown>>) {
  const { params } = pathOf(route);
  return Object.fromEntries(Object.entries(input).filter(([name]) => !params.includes(name)));
}
